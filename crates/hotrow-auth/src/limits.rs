//! Every bound of authentication. The unit is the last part of the name. Each comment says what is bounded and what happens
//! beyond the bound.

/// Lines of the access file. A longer file is rejected.
pub const HBA_RULES_MAX: usize = 1_000;
/// Users in the user file. A longer file is rejected. Each plain password needs one millisecond when the file
/// is read.
pub const USERS_MAX: usize = 10_000;
/// Bytes of the access file and of the user file. A larger file is rejected.
pub const AUTH_FILE_BYTES_MAX: u64 = 4 << 20;
/// Iterations of the SCRAM hash. A peer that requests more is rejected. PostgreSQL's default is 4,096.
pub const SCRAM_ITERATIONS_MAX: u32 = 1_000_000;
