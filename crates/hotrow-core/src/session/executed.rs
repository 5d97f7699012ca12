//! Which statements have run on a connection. The session uses this to tell whether a single text of SETs set all settings.

/// The statements that have run on a connection since the session got it, or since the server last said which state is left.
#[derive(Debug, Default)]
pub(super) enum Executed<S> {
    /// None, or such as are known to leave nothing.
    #[default]
    Nothing,
    /// One text of SETs and RESETs, whose effect depends on the text alone. The server has not answered this number of them.
    Sets(S, usize),
    /// The same, and the server has answered with nothing but success.
    SetsOnly(S),
    Other,
}

impl<S> Executed<S> {
    /// One more text is sent, with this number of such SETs and RESETs if there is nothing else in it. `is_clean` is whether it is
    /// known to leave nothing.
    pub(super) fn add(&mut self, statement: S, sets: usize, is_clean: bool) {
        *self = match (std::mem::take(self), sets) {
            (Executed::Nothing, 1..) => Executed::Sets(statement, sets),
            (Executed::Nothing, 0) if is_clean => Executed::Nothing,
            _ => Executed::Other,
        };
    }

    /// A command has succeeded.
    pub(super) fn completed(&mut self, tag: &[u8]) {
        let is_set = matches!(tag, b"SET\0" | b"RESET\0");
        *self = match std::mem::take(self) {
            Executed::Nothing => Executed::Nothing,
            Executed::Sets(statement, 1) if is_set => Executed::SetsOnly(statement),
            Executed::Sets(statement, sets) if is_set => Executed::Sets(statement, sets - 1),
            _ => Executed::Other,
        };
    }
}
