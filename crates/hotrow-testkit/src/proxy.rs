//! A TCP proxy between gateway and server that cuts connections of lanes at chosen positions. It interprets only
//! the startup packet, which identifies lanes, and ReadyForQuery.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const READY_IDLE: &[u8] = &[b'Z', 0, 0, 0, 5, b'I'];
/// The end of the answer to a batch's last statement: its row ends with a number and a null. Comparisons of
/// fingerprints before it also return one row each, which ends with another value.
const LAST_ANSWER: &[u8] = b"\0\0\0\x011\xff\xff\xff\xffC\0\0\0\x0dSELECT 1\0";

/// The direction of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the gateway.
    ToServer,
    /// From the server.
    ToGateway,
}

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The connection is cut at once, regardless of the server's state.
    Cut,
    /// The server continues, its answers are lost, and the connection is cut when the server is ready: it has then
    /// committed.
    Swallow,
    /// No more bytes arrive in this direction. The other direction continues until its sender closes the
    /// connection.
    HalfClose,
}

/// The bytes that pass before a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// This number of bytes.
    Bytes(usize),
    /// The answer to the last statement of a batch, which returns the transaction's ID. The commit follows.
    TransactionId,
}

/// A fault of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The direction whose bytes count.
    pub way: Way,
    /// The bytes that still pass.
    pub after: After,
    /// The kind of the fault.
    pub how: How,
}

/// Decides the fault of each new connection of a lane.
type ForNew = Box<dyn FnMut() -> Option<Fault> + Send>;

/// The proxy. It listens until the test program ends.
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    server: u16,
    lanes: Mutex<Vec<Arc<Connection>>>,
    others: Mutex<Vec<Arc<Connection>>>,
    for_new: Mutex<Option<ForNew>>,
    /// The delay of bytes of lanes, in both directions.
    delay_ms: AtomicU64,
    cuts: AtomicUsize,
}

struct Connection {
    gateway: TcpStream,
    server: TcpStream,
    fault: Mutex<Option<Fault>>,
    is_lane: bool,
}

impl Proxy {
    /// Starts a proxy in front of the server on this port.
    pub fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared { server, ..Shared::default() });
        let accepting = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = accepting.clone();
                // An error is ignored: a stopped server or a closed connection is a part of the tests.
                thread::spawn(move || shared.serve(stream).ok());
            }
        });
        Self { port, shared }
    }

    /// The port of the proxy.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL for `--upstream`. It disables TLS, because the proxy must be able to read the startup packet.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres?sslmode=disable", self.port)
    }

    /// Plants a fault in the existing connections of lanes.
    pub fn arm(&self, fault: Fault) {
        for connection in self.shared.lanes.lock().unwrap().iter() {
            *connection.fault.lock().unwrap() = Some(fault);
        }
    }

    /// Removes the faults of all existing connections.
    pub fn disarm(&self) {
        self.for_new(|| None);
        for connection in self.shared.lanes.lock().unwrap().iter() {
            *connection.fault.lock().unwrap() = None;
        }
    }

    /// Cuts all existing connections that do not belong to lanes.
    pub fn cut_others(&self) {
        self.shared.others.lock().unwrap().iter().for_each(|connection| connection.cut());
    }

    /// Cuts all existing connections of lanes.
    pub fn cut_lanes(&self) {
        self.shared.lanes.lock().unwrap().iter().for_each(|connection| connection.cut());
    }

    /// Sets the faults of the lanes' next connections.
    pub fn for_new(&self, decide: impl FnMut() -> Option<Fault> + Send + 'static) {
        *self.shared.for_new.lock().unwrap() = Some(Box::new(decide));
    }

    /// Sets the delay of bytes of lanes, in both directions.
    pub fn delay(&self, delay: Duration) {
        self.shared.delay_ms.store(delay.as_millis() as u64, Relaxed);
    }

    /// The number of connections that the proxy has cut.
    pub fn cuts(&self) -> usize {
        self.shared.cuts.load(Relaxed)
    }
}

impl Shared {
    fn serve(&self, mut gateway: TcpStream) -> io::Result<()> {
        let mut server = TcpStream::connect(("127.0.0.1", self.server))?;
        gateway.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let mut start = vec![0; 4];
        gateway.read_exact(&mut start)?;
        let length = u32::from_be_bytes(*start.first_chunk().expect("four bytes")) as usize;
        start.resize(length, 0);
        gateway.read_exact(&mut start[4..])?;
        server.write_all(&start)?;

        let is_lane = String::from_utf8_lossy(&start).contains("application_name\0hotrow lane");
        let fault = match &mut *self.for_new.lock().unwrap() {
            Some(decide) if is_lane => decide(),
            _ => None,
        };
        let connection = Arc::new(Connection { gateway, server, fault: Mutex::new(fault), is_lane });
        let list = if is_lane { &self.lanes } else { &self.others };
        list.lock().unwrap().push(connection.clone());
        thread::scope(|scope| {
            scope.spawn(|| self.carry(&connection, Way::ToServer));
            self.carry(&connection, Way::ToGateway);
        });
        list.lock().unwrap().retain(|other| !Arc::ptr_eq(other, &connection));
        Ok(())
    }

    /// Forwards bytes in one direction until the connection ends or is cut.
    fn carry(&self, connection: &Connection, way: Way) {
        let (mut from, mut to) = match way {
            Way::ToServer => (&connection.gateway, &connection.server),
            Way::ToGateway => (&connection.server, &connection.gateway),
        };
        let mut chunk = [0; 16 << 10];
        let mut tail = Vec::new();
        let mut swallowing = false;
        while let Ok(count @ 1..) = from.read(&mut chunk) {
            let (passed, broken) =
                if swallowing { (0, Some(How::Swallow)) } else { connection.passes(way, &chunk[..count]) };
            tail.extend_from_slice(&chunk[..count]);
            tail.drain(..tail.len().saturating_sub(READY_IDLE.len()));
            if connection.is_lane {
                // The delay of a slow network.
                thread::sleep(Duration::from_millis(self.delay_ms.load(Relaxed)));
            }
            if to.write_all(&chunk[..passed]).is_err() {
                break;
            }
            match broken {
                None => {}
                Some(How::Swallow) if tail != READY_IDLE => swallowing = true,
                Some(How::HalfClose) => {
                    self.cuts.fetch_add(1, Relaxed);
                    let _ = to.shutdown(Shutdown::Write); // the other end may be closed already
                    while let Ok(1..) = from.read(&mut chunk) {}
                    break;
                }
                Some(_) => {
                    self.cuts.fetch_add(1, Relaxed);
                    break;
                }
            }
        }
        connection.cut();
    }
}

impl Connection {
    fn cut(&self) {
        // Either end may be closed already.
        let _ = self.gateway.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }

    /// The number of these bytes that can pass, and the fault after them, if there is one.
    fn passes(&self, way: Way, bytes: &[u8]) -> (usize, Option<How>) {
        let mut armed = self.fault.lock().unwrap();
        let Some(fault) = armed.as_mut().filter(|fault| fault.way == way) else { return (bytes.len(), None) };
        let end = match &mut fault.after {
            After::Bytes(left) if *left > bytes.len() => {
                *left -= bytes.len();
                None
            }
            After::Bytes(left) => Some(*left),
            After::TransactionId => {
                // A batch of several tables ends with several statements, whose answers arrive together.
                let found = bytes.windows(LAST_ANSWER.len()).rposition(|window| window == LAST_ANSWER);
                found.map(|at| at + LAST_ANSWER.len())
            }
        };
        end.map_or((bytes.len(), None), |end| (end, Some(fault.how)))
    }
}
