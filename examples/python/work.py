"""Works off an ordered queue with psycopg 3: takes orders, keeps their lease while it works, and stops when told to.

SIGTERM or SIGINT: the order in hand is finished, the others go back, and a take that waits is cancelled.
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
# For whoever wants to see the end of it: without a limit it works until it is stopped.
IDLE_LIMIT = os.environ.get("STOP_WHEN_EMPTY") == "1"


class Worker:
    def __init__(self, url: str):
        self.url = url
        self.stopping, self.finished = threading.Event(), threading.Event()
        self.connection = self.connect()
        # The receipt in hand. All that one take gave ends together, so that one receipt keeps all of it.
        self.in_hand = None
        self.done = 0
        self.waiting = False

    def connect(self) -> psycopg.Connection:
        # Without autocommit each call would be wrapped in BEGIN and COMMIT, and what is in a transaction is never merged.
        return psycopg.connect(self.url, autocommit=True)

    def stop(self, *_) -> None:
        self.stopping.set()
        # A take that is cancelled has taken nothing; anything else is soon done.
        if self.waiting:
            self.connection.cancel_safe(timeout=5)

    def call(self, sql: str, *values) -> list[tuple]:
        """Repeats what does no harm when repeated: whoever asks again may be told that the lease is lost."""
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

    def beat(self) -> None:
        """Runs beside the work, on a connection of its own, also while the last order is finished."""
        while not self.finished.wait(LEASE_SECONDS / 3):
            receipt = self.in_hand
            try:
                if receipt is not None:
                    with self.connect() as connection:
                        connection.execute(
                            "select * from hotrow.extend_lease(%s, %s::bigint, %s::interval)", (QUEUE, receipt, LEASE)
                        )
            except psycopg.OperationalError:
                pass  # the next beat comes before the lease ends

    def work(self) -> None:
        threading.Thread(target=self.beat, daemon=True).start()
        while not self.stopping.is_set():
            self.waiting = True
            orders = self.call(
                "select receipt, payload, attempt from hotrow.take(%s, 10, %s::interval, %s::interval)",
                QUEUE, LEASE, "1 second" if IDLE_LIMIT else "20 seconds",
            )
            self.waiting = False
            if not orders and IDLE_LIMIT:
                break
            for receipt, payload, attempt in orders:
                self.in_hand = receipt
                if self.stopping.is_set():
                    self.call("select * from hotrow.release(%s, %s::bigint)", QUEUE, receipt)
                else:
                    self.done += self.settle(receipt, payload, attempt) == [("completed",)]
            self.in_hand = None
        self.finished.set()

    def settle(self, receipt: int, payload: dict | None, attempt: int) -> list[tuple]:
        try:
            result = handle(payload, attempt)
        except Exception as error:  # whatever it is, another attempt may do better
            return self.call("select * from hotrow.fail(%s, %s::bigint, %s)", QUEUE, receipt, str(error))
        return self.call(
            "select * from hotrow.complete(%s, %s::bigint, 0, %s::jsonb)", QUEUE, receipt, psycopg.types.json.Jsonb(result)
        )


def handle(payload: dict | None, attempt: int) -> dict:
    """Here a shop would ship. Work may be done twice when a lease ends too early: let it recognise the order's id."""
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
