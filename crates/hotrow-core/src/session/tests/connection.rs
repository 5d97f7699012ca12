//! A connection that a simulated session holds.

use bytes::BytesMut;

use crate::expect::PreparedStatements;
use crate::session::Connection;

/// A connection that a simulated session holds.
#[derive(Debug, Default)]
pub struct SimConnection {
    pub backend: usize,
    pub output: BytesMut,
    /// Bytes from the server that the session has not handled.
    pub input: BytesMut,
    pub prepared: PreparedStatements,
    pub name: String,
    pub moved_sequence: bool,
}

/// The name of a client that sets none.
pub const DEFAULT_NAME: &str = "";

impl SimConnection {
    /// The process ID of the first backend. No client is told one of these.
    pub const FIRST_PROCESS_ID: u32 = 1000;
}

impl Connection for SimConnection {
    fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    fn prepared(&self) -> &PreparedStatements {
        &self.prepared
    }

    fn prepared_mut(&mut self) -> &mut PreparedStatements {
        &mut self.prepared
    }

    fn process_id(&self) -> u32 {
        Self::FIRST_PROCESS_ID + self.backend as u32
    }

    fn moved_sequence(&self) -> bool {
        self.moved_sequence
    }

    fn set_moved_sequence(&mut self) {
        self.moved_sequence = true;
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn default_name(&self) -> &str {
        DEFAULT_NAME
    }

    fn setting_changed(&mut self, name: &str, value: &str) {
        if name == "application_name" {
            value.clone_into(&mut self.name);
        }
    }

    fn kept_for_long(&mut self) {}
}
