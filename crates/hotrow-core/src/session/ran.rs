//! Which statements have run on a connection, as far as it shows whether one SET alone has decided on the settings.

/// The statements that have run on a connection since the session got it, or since the server last said which state is left.
#[derive(Debug, Default)]
pub(super) enum Ran<S> {
    /// None.
    #[default]
    Nothing,
    /// One SET, whose effect depends on its text alone. The server has not answered it.
    Set(S),
    /// The same, and the server has answered with nothing but its success.
    SetOnly(S),
    /// Others.
    Other,
}

impl<S> Ran<S> {
    /// One more statement is sent, with the setting that it sets if it is such a SET.
    pub(super) fn add(&mut self, statement: S, sets: Option<&str>) {
        *self = match (std::mem::take(self), sets) {
            (Ran::Nothing, Some(_)) => Ran::Set(statement),
            _ => Ran::Other,
        };
    }

    /// A command has succeeded.
    pub(super) fn completed(&mut self, tag: &[u8]) {
        *self = match std::mem::take(self) {
            Ran::Set(statement) if tag == b"SET\0" => Ran::SetOnly(statement),
            _ => Ran::Other,
        };
    }
}
