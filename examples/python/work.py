"""Processes an ordered queue with psycopg 3: takes orders and extends their lease while it works, until it is stopped.

On SIGTERM or SIGINT it finishes the current order, releases the others, and cancels a take that waits.
"""

import os
import signal
import sys
import threading
import time

import psycopg

QUEUE = os.environ.get("QUEUE", "orders")
LEASE_SECONDS = float(os.environ.get("LEASE_SECONDS", "30"))
LEASE = f"{LEASE_SECONDS} seconds"
# Whether to end when the queue is empty. Without this setting it works until it is stopped.
STOP_WHEN_EMPTY = os.environ.get("STOP_WHEN_EMPTY") == "1"


class Worker:
    def __init__(self, url: str):
        self.url = url
        self.stopping, self.finished = threading.Event(), threading.Event()
        self.connection = self.connect()
        # The current receipt. The queue has one shard, so the leases of all orders of one take end together, and one receipt
        # extends all of them.
        self.current = None
        self.done = 0
        self.waiting = False

    def connect(self) -> psycopg.Connection:
        # Without autocommit the driver would send BEGIN before each call, and calls in a transaction are never merged.
        return psycopg.connect(self.url, autocommit=True)

    def stop(self, *_) -> None:
        self.stopping.set()
        # A cancelled take has taken nothing. Other calls finish soon.
        if self.waiting:
            self.connection.cancel_safe(timeout=5)

    def call(self, sql: str, *values) -> list[tuple]:
        """Repeats a call if the connection is lost. All calls can be repeated safely, but a repeated call can return lease_lost."""
        for attempt in range(1, 11):
            try:
                if self.connection.closed:
                    self.connection = self.connect()
                return self.connection.execute(sql, values).fetchall()
            except psycopg.errors.QueryCanceled:
                if self.waiting:
                    return []
            except psycopg.OperationalError as error:
                if attempt == 10 or not (error.sqlstate or "08").startswith(("08", "57P0")):
                    raise
                time.sleep(0.1 * attempt)
        return []

    def extend_leases(self) -> None:
        """Extends the lease in another thread, on its own connection, until the last order is finished."""
        while not self.finished.wait(LEASE_SECONDS / 3):
            receipt = self.current
            try:
                if receipt is not None:
                    with self.connect() as connection:
                        connection.execute(
                            "select * from hotrow.extend_lease(%s, %s::bigint, %s::interval)", (QUEUE, receipt, LEASE)
                        )
            except psycopg.OperationalError:
                pass  # the next attempt precedes the end of the lease

    def work(self) -> None:
        threading.Thread(target=self.extend_leases, daemon=True).start()
        while not self.stopping.is_set():
            self.waiting = True
            orders = self.call(
                "select receipt, payload, attempt from hotrow.take(%s, 10, %s::interval, %s::interval)",
                QUEUE, LEASE, "1 second" if STOP_WHEN_EMPTY else "20 seconds",
            )
            self.waiting = False
            if not orders and STOP_WHEN_EMPTY:
                break
            for receipt, payload, attempt in orders:
                self.current = receipt
                if self.stopping.is_set():
                    self.call("select * from hotrow.release(%s, %s::bigint)", QUEUE, receipt)
                else:
                    self.done += self.settle(receipt, payload, attempt) == [("completed",)]
            self.current = None
        self.finished.set()

    def settle(self, receipt: int, payload: dict | None, attempt: int) -> list[tuple]:
        try:
            result = handle(payload, attempt)
        except Exception as error:  # another attempt may succeed
            return self.call("select * from hotrow.fail(%s, %s::bigint, %s)", QUEUE, receipt, str(error))
        return self.call(
            "select * from hotrow.complete(%s, %s::bigint, 0, %s::jsonb)", QUEUE, receipt, psycopg.types.json.Jsonb(result)
        )


def handle(payload: dict | None, attempt: int) -> dict:
    """Here a shop would ship the order. If a lease ends too early, the work is done twice, so it must recognise the order's ID."""
    if payload and payload.get("fails", 0) >= attempt:
        raise RuntimeError("not yet")
    time.sleep(float(os.environ.get("WORK_SECONDS", "0")))
    return {"shipped": True}


def main() -> int:
    worker = Worker(os.environ["DATABASE_URL"])
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, worker.stop)
    worker.work()
    print(f"completed {worker.done} orders of {QUEUE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
