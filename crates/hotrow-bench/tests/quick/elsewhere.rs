//! A server beside that of the benchmark.

use hotrow_postgres::PrivateServer;

/// Another server with the scenario's rows. The benchmark does not read it.
pub fn elsewhere() -> PrivateServer {
    let server = PrivateServer::builder().label("bench-elsewhere").start().unwrap();
    let set_up =
        concat!(include_str!("../../sql/inventory.sql"), include_str!("../../sql/inventory_fill.sql"));
    let rows = "set hotrow_bench.first = 1; set hotrow_bench.last = 1";
    server.query(&format!("{rows};\n{set_up}")).unwrap();
    server
}
