//! A TCP proxy between gateway and server that cuts the connections of lanes where a test wants it. Knows of the
//! protocol only the start-up packet, which tells lanes from others, and what ReadyForQuery looks like.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const READY_IDLE: &[u8] = &[b'Z', 0, 0, 0, 5, b'I'];
/// The end of the answer to a batch's last statement: its row ends with a number and a null. Comparisons of fingerprints
/// before it return one row each, too, which ends with another value.
const LAST_ANSWER: &[u8] = b"\0\0\0\x011\xff\xff\xff\xffC\0\0\0\x0dSELECT 1\0";

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// What the gateway sends.
    ToServer,
    /// What the server sends.
    ToGateway,
}

/// What happens to a connection then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It is cut at once, whatever the server is doing.
    Cut,
    /// The server is served on, its answers are lost, and the cut comes when it is ready: the commit is done then.
    Swallow,
    /// This way nothing comes any more, and the other way goes on until its sender has had enough.
    HalfClose,
}

/// What goes through before a connection breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// So many more bytes.
    Bytes(usize),
    /// The answer to the last statement of a batch, which asks for the transaction's id: the commit follows.
    TransactionId,
}

/// Where a connection breaks.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The direction whose bytes count.
    pub way: Way,
    /// What still goes through.
    pub after: After,
    /// What happens then.
    pub how: How,
}

/// Decides about each new connection of a lane.
type ForNew = Box<dyn FnMut() -> Option<Fault> + Send>;

/// Listens until the test program ends.
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
    /// How long bytes of lanes are on their way, either way.
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
    /// In front of the server on this port.
    pub fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared { server, ..Shared::default() });
        let accepting = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = accepting.clone();
                // A server that is down, or a peer that leaves at once, is what the tests are about.
                thread::spawn(move || shared.serve(stream).ok());
            }
        });
        Self { port, shared }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// For `--upstream`: what it has to understand may not begin with a request for TLS.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres?sslmode=disable", self.port)
    }

    /// Breaks the lanes' connections that are there now.
    pub fn arm(&self, fault: Fault) {
        for connection in self.shared.lanes.lock().unwrap().iter() {
            *connection.fault.lock().unwrap() = Some(fault);
        }
    }

    /// Nothing that is there now breaks any more.
    pub fn disarm(&self) {
        self.for_new(|| None);
        for connection in self.shared.lanes.lock().unwrap().iter() {
            *connection.fault.lock().unwrap() = None;
        }
    }

    /// Cuts all connections that are there now and aren't lanes'.
    pub fn cut_others(&self) {
        self.shared.others.lock().unwrap().iter().for_each(|connection| connection.cut());
    }

    /// What becomes of the lanes' next connections.
    pub fn for_new(&self, decide: impl FnMut() -> Option<Fault> + Send + 'static) {
        *self.shared.for_new.lock().unwrap() = Some(Box::new(decide));
    }

    /// From now on bytes of lanes take so long, either way.
    pub fn delay(&self, delay: Duration) {
        self.shared.delay_ms.store(delay.as_millis() as u64, Relaxed);
    }

    /// How many connections it has cut.
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

    /// Carries bytes one way until the connection ends or is cut.
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
                    let _ = to.shutdown(Shutdown::Write); // it may be gone already
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
        // Either end may be gone already.
        let _ = self.gateway.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }

    /// How many of these bytes may pass, and how the connection breaks behind them if it does.
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
                let found = bytes.windows(LAST_ANSWER.len()).position(|window| window == LAST_ANSWER);
                found.map(|at| at + LAST_ANSWER.len())
            }
        };
        end.map_or((bytes.len(), None), |end| (end, Some(fault.how)))
    }
}
