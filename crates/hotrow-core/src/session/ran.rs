//! Which statements have run on a connection. The session uses this to tell whether a single text of SETs set all settings.

/// The statements that have run on a connection since the session got it, or since the server last said which state is left.
#[derive(Debug, Default)]
pub(super) enum Ran<S> {
    /// None.
    #[default]
    Nothing,
    /// One text of SETs, whose effect depends on the text alone. The server has not answered this number of them.
    Sets(S, usize),
    /// The same, and the server has answered with nothing but success.
    SetsOnly(S),
    /// Others.
    Other,
}

impl<S> Ran<S> {
    /// One more text is sent, with this number of such SETs if there is nothing else in it.
    pub(super) fn add(&mut self, statement: S, sets: usize) {
        *self = match (std::mem::take(self), sets) {
            (Ran::Nothing, 1..) => Ran::Sets(statement, sets),
            _ => Ran::Other,
        };
    }

    /// A command has succeeded.
    pub(super) fn completed(&mut self, tag: &[u8]) {
        *self = match std::mem::take(self) {
            Ran::Sets(statement, 1) if tag == b"SET\0" => Ran::SetsOnly(statement),
            Ran::Sets(statement, sets) if tag == b"SET\0" => Ran::Sets(statement, sets - 1),
            _ => Ran::Other,
        };
    }
}
