//! The SQLSTATEs that the gateway raises itself, with the names of the server's `errcodes.txt`.

macro_rules! sqlstates {
    ($($name:ident = $code:literal,)*) => {
        /// A SQLSTATE that the gateway raises.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum SqlState {
            $($name,)*
        }

        impl SqlState {
            /// The five characters.
            pub const fn code(self) -> &'static str {
                match self {
                    $(SqlState::$name => $code,)*
                }
            }
        }
    };
}

sqlstates! {
    ConnectionFailure = "08006",
    TransactionResolutionUnknown = "08007",
    ProtocolViolation = "08P01",
    FeatureNotSupported = "0A000",
    InvalidParameterValue = "22023",
    InFailedSqlTransaction = "25P02",
    UndefinedPreparedStatement = "26000",
    InvalidAuthorizationSpecification = "28000",
    InvalidPassword = "28P01",
    UndefinedCursor = "34000",
    ExternalRoutineInvocationException = "39000",
    UndefinedDatabase = "3D000",
    SerializationFailure = "40001",
    InsufficientPrivilege = "42501",
    SyntaxError = "42601",
    UndefinedObject = "42704",
    InsufficientResources = "53000",
    OutOfMemory = "53200",
    TooManyConnections = "53300",
    ConfigurationLimitExceeded = "53400",
    QueryCanceled = "57014",
    AdminShutdown = "57P01",
    CannotConnectNow = "57P03",
    ConfigFileError = "F0000",
    InternalError = "XX000",
}
