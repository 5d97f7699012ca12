//! Tests the scenario over HTTP with the real API of two gateways. A server directly behind the API replaces their lanes.

use crate::bench::Bench;
use hotrow_postgres::PrivateServer;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, UnixStream};
use tokio::runtime::Runtime;

/// The API of two gateways, in this process.
struct Apis {
    addresses: Vec<SocketAddr>,
    runtime: Runtime,
}

impl Apis {
    /// In front of this server.
    fn start(server: &PrivateServer) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let addresses = (0..2).map(|_| runtime.block_on(serve(server))).collect();
        Self { addresses, runtime }
    }

    /// A program that is started as the gateway. Its first start reports one address, its second start the other.
    fn program(&self, bench: &Bench) -> String {
        let [first, second] = self.addresses[..] else { panic!("expected two addresses") };
        bench.program(&format!(
            "if mkdir \"$0.first\" 2>/dev/null; then http={first}; else http={second}; fi\n\
             echo \"hotrow: serving HTTP on $http\"\necho 'hotrow: listening on 127.0.0.1:1'\nexec sleep 600"
        ))
    }

    /// Closes all connections.
    fn stop(self) {
        self.runtime.shutdown_timeout(Duration::from_secs(10));
    }
}

async fn serve(server: &PrivateServer) -> SocketAddr {
    let socket = server.socket_dir().join(format!(".s.PGSQL.{}", server.port()));
    let connect = move || {
        let stream = std::os::unix::net::UnixStream::connect(&socket)?;
        stream.set_nonblocking(true)?;
        UnixStream::from_std(stream)
    };
    let (running, stop) = tokio::sync::watch::channel(());
    let upstream = hotrow_http::GatewayAccess {
        connect: Arc::new(connect),
        user: "postgres".into(),
        database: "postgres".into(),
        // There is no gateway in between that could run the queries.
        pack_trusted: "select $1::name is not null and $2::text is not null and $3::text is not null",
        missing_functions: "select function from unnest($1::text[]) as function where false",
        stop,
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let bounds = hotrow_http::Bounds::new(Duration::ZERO);
    let router = hotrow_http::router(&upstream, None, None);
    tokio::spawn(async move {
        hotrow_http::serve(listener, router, bounds, std::future::pending()).await;
        drop(running);
    });
    address
}

fn server() -> PrivateServer {
    PrivateServer::builder().label("bench-upstream").start().unwrap()
}

#[test]
fn counter_http() {
    let (server, bench) = (server(), Bench::new());
    let apis = Apis::start(&server);
    let program = apis.program(&bench);
    let arguments = ["counter-http", "--upstream", &server.url(), "--gateway-program", &program];
    let outcome = bench.run(&arguments).unwrap();
    apis.stop();
    assert_eq!(outcome.failures, Vec::<String>::new());
    assert!(outcome.markdown.contains("10,000 requests per second, 90 % of them"), "{}", outcome.markdown);
    assert!(outcome.markdown.contains("0 were rejected"), "{}", outcome.markdown);
    let report = bench.report();
    let technique = &report["scenarios"][0]["techniques"][0];
    assert_eq!(technique["through"], "hotrow-http");
    let cell = &technique["cells"][0];
    assert_eq!((&cell["outcome"], &cell["due_per_second"]), (&"measured".into(), &1_000.into()));
    let round = &cell["rounds"][0];
    assert!(round["done"].as_u64().unwrap() > 0, "{cell}");
    assert_eq!(round["done"], round["latency"]["samples"], "each answer is timed: {cell}");
    assert!(round["pace"]["arrived_per_second"].as_f64().unwrap() > 0.0, "{cell}");
    assert_eq!(round["pace"]["refused"], 0, "{cell}");
}

#[test]
fn commands_that_are_acknowledged_but_not_in_the_rows_give_no_figure() {
    let (server, elsewhere, bench) = (server(), server(), Bench::new());
    let apis = Apis::start(&elsewhere);
    apis.runtime.block_on(async {
        let (mut client, connection) =
            tokio_postgres::connect(&elsewhere.url(), tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        hotrow_sql::migrate(&mut client, "hotrow_caller").await.unwrap();
    });
    let program = apis.program(&bench);
    let arguments = ["counter-http", "--upstream", &server.url(), "--gateway-program", &program];
    let outcome = bench.run(&arguments).unwrap();
    apis.stop();
    assert_eq!(outcome.failures.len(), 1, "{:?}", outcome.failures);
    assert!(outcome.failures[0].contains("but the rows show 0"), "{:?}", outcome.failures);
}

#[test]
fn unsuccessful_answers_are_named_and_give_no_figure() {
    let (server, elsewhere, bench) = (server(), server(), Bench::new());
    let apis = Apis::start(&elsewhere);
    elsewhere
        .query(
            "create schema hotrow; create function hotrow.increment(text, bigint, uuid, out value bigint,
        out version bigint, out status text) language sql as $$ select 1, 1, 'out_of_bounds' $$",
        )
        .unwrap();
    let program = apis.program(&bench);
    let arguments = ["counter-http", "--upstream", &server.url(), "--gateway-program", &program];
    let outcome = bench.run(&arguments).unwrap();
    apis.stop();
    assert_eq!(outcome.failures.len(), 1, "{:?}", outcome.failures);
    assert!(outcome.failures[0].contains("out_of_bounds"), "{:?}", outcome.failures);
}

#[test]
fn a_gateway_that_runs_already_is_omitted_with_a_reason() {
    let (server, bench) = (server(), Bench::new());
    let outcome =
        bench.run(&["counter-http", "--upstream", &server.url(), "--gateway", &server.url()]).unwrap();
    assert!(outcome.markdown.contains("`hotrow` was not run: the benchmark did not start the gateway"));
}
