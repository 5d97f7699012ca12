//! Memory for answers. An answer counts from the time its call is sent until the client has read it, in the connection's
//! bound and in the bound of all connections. A request without room waits before it is executed.

use std::sync::Arc;
use std::time::Duration;

use crate::limits;
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::Problem;

/// The bytes of one permit.
const UNIT: usize = 1024;

/// The room for the answers of one connection.
#[derive(Clone, Debug)]
pub struct ConnectionRoom(Arc<Semaphore>);

impl Default for ConnectionRoom {
    fn default() -> Self {
        ConnectionRoom(semaphore(limits::HTTP_CONNECTION_ANSWER_BYTES_MAX))
    }
}

/// The room for the answers of all connections.
pub fn of_all_connections() -> Arc<Semaphore> {
    semaphore(limits::HTTP_ANSWER_BYTES_MAX)
}

/// The bytes that this number of rows is expected to have.
pub fn rows(most: i32, row_bytes: usize) -> usize {
    usize::try_from(most).unwrap_or(0).min(limits::HTTP_ROWS_MAX) * row_bytes
}

fn semaphore(bytes: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(bytes / UNIT))
}

/// The room for the answers of a request: that of its connection, and that of all connections.
pub struct Room {
    connection: Arc<Semaphore>,
    all: Arc<Semaphore>,
}

impl Room {
    /// The room of a request on this connection.
    pub fn new(connection: &ConnectionRoom, all: &Arc<Semaphore>) -> Self {
        Room { connection: connection.0.clone(), all: all.clone() }
    }

    /// Waits for the room of an answer with this number of bytes. A larger number than a connection's bound counts as this
    /// bound, so the answer is the connection's only one.
    pub async fn reserve(&self, bytes: usize) -> Result<Held, Problem> {
        self.reserve_within(bytes, Duration::from_millis(limits::HTTP_SEND_TIMEOUT_MS)).await
    }

    async fn reserve_within(&self, bytes: usize, limit: Duration) -> Result<Held, Problem> {
        let most = units(limits::HTTP_CONNECTION_ANSWER_BYTES_MAX);
        let wanted = units(bytes).min(most);
        let room = async {
            let connection = self.connection.clone().acquire_many_owned(wanted).await;
            let all = self.all.clone().acquire_many_owned(wanted).await;
            Some(Held { connection: connection.ok()?, all: all.ok()? })
        };
        let held = tokio::time::timeout(limit, room).await.ok().flatten();
        held.ok_or_else(Problem::unread)
    }
}

/// Room that an answer takes.
pub struct Held {
    connection: OwnedSemaphorePermit,
    all: OwnedSemaphorePermit,
}

impl Held {
    /// The answer, which takes as much room as it has bytes until the last copy of it is dropped. That is when the
    /// operating system has it: a stream that the client does not read keeps it.
    pub fn into_bytes(mut self, answer: Vec<u8>) -> Bytes {
        let wanted = units(answer.len());
        for permit in [&mut self.connection, &mut self.all] {
            adjust(permit, wanted);
        }
        Bytes::from_owner(Answer { answer, _held: self })
    }
}

/// Makes a permit as large as the answer. If the answer is larger than expected, the permit takes what is left.
fn adjust(permit: &mut OwnedSemaphorePermit, wanted: u32) {
    let held = u32::try_from(permit.num_permits()).unwrap_or(u32::MAX);
    if let Some(unused) = held.checked_sub(wanted) {
        drop(permit.split(unused as usize));
        return;
    }
    let semaphore = permit.semaphore().clone();
    let left = u32::try_from(semaphore.available_permits()).unwrap_or(u32::MAX);
    if let Ok(more) = semaphore.try_acquire_many_owned((wanted - held).min(left)) {
        permit.merge(more);
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

/// An answer with its room.
struct Answer {
    answer: Vec<u8>,
    _held: Held,
}

impl AsRef<[u8]> for Answer {
    fn as_ref(&self) -> &[u8] {
        &self.answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room() -> Room {
        Room { connection: semaphore(10 * UNIT), all: semaphore(100 * UNIT) }
    }

    fn left(room: &Room) -> (usize, usize) {
        (room.connection.available_permits(), room.all.available_permits())
    }

    #[tokio::test]
    async fn an_answer_takes_room_until_its_last_copy_is_dropped() {
        let room = room();
        let held = room.reserve(6 * UNIT).await.unwrap();
        assert_eq!(left(&room), (4, 94));
        let answer = held.into_bytes(vec![b'x'; 2 * UNIT + 1]);
        assert_eq!(left(&room), (7, 97));
        let part = answer.slice(..1);
        drop(answer);
        assert_eq!(left(&room), (7, 97));
        drop(part);
        assert_eq!(left(&room), (10, 100));
    }

    #[tokio::test]
    async fn an_answer_that_is_larger_than_expected_takes_what_is_left() {
        let room = room();
        let held = room.reserve(UNIT).await.unwrap();
        let answer = held.into_bytes(vec![b'x'; 50 * UNIT]);
        assert_eq!(left(&room), (0, 50));
        drop(answer);
        assert_eq!(left(&room), (10, 100));
    }

    #[tokio::test]
    async fn a_request_without_room_waits_and_is_then_told_to_retry() {
        use axum::response::IntoResponse;

        let room = room();
        let unread = room.reserve(5 * UNIT).await.unwrap().into_bytes(vec![b'x'; 5 * UNIT]);
        let refused = room.reserve_within(6 * UNIT, Duration::ZERO).await.err().unwrap().into_response();
        assert_eq!(
            (refused.status().as_u16(), &refused.headers()["retry-after"]),
            (503, &"1".parse().unwrap())
        );
        assert_eq!(left(&room), (5, 95));
        let (held, ()) = tokio::join!(room.reserve(6 * UNIT), async { drop(unread) });
        assert!(held.is_ok());
    }
}
