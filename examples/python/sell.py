"""Sells a hundred phones to ten thousand buyers through Hotrow with psycopg 3: 64 threads and a pool, plain SQL."""

import os
import sys
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psycopg
from psycopg_pool import ConnectionPool

ITEM = os.environ.get("ITEM", "phone-python")
STOCK, BUYERS, WORKERS, TRIES = 100, 10_000, 64, 10


def connection_lost(error: psycopg.OperationalError) -> bool:
    """Class 08, a server that stops or starts, or a connection that broke without an error message."""
    return error.sqlstate is None or error.sqlstate.startswith(("08", "57P0"))


def call(pool: ConnectionPool, sql: str, *values) -> tuple | None:
    """Runs a statement that can be repeated safely, and repeats it if the connection is lost."""
    for attempt in range(1, TRIES + 1):
        try:
            with pool.connection() as connection:
                return connection.execute(sql, values).fetchone()
        except psycopg.OperationalError as error:
            if attempt == TRIES or not connection_lost(error):
                raise
            time.sleep(0.1 * attempt)


def buy(pool: ConnectionPool, buyer: str) -> list[str]:
    """The statuses that one buyer receives."""
    # Generated once per purchase: a call repeated with the same ID gets the recorded answer and not a second phone.
    request_id = uuid.uuid4()
    status, reservation_id, _ = call(
        pool, "select * from hotrow.reserve(%s, %s, 1, %s)", ITEM, buyer, request_id
    )
    if status != "reserved":
        return [status]
    # Here a shop would charge the buyer. A repeated confirm returns "confirmed" again, so it needs no request ID.
    (confirmation,) = call(pool, "select * from hotrow.confirm(%s)", reservation_id)
    return [status, confirmation]


def main() -> int:
    # Without autocommit the driver would send BEGIN before each call, and calls in a transaction are never merged.
    options = {"autocommit": True}
    with ConnectionPool(os.environ["DATABASE_URL"], kwargs=options, min_size=WORKERS) as pool:
        (created,) = call(
            pool,
            "select hotrow.create_sale(%s, stock => %s, per_buyer => 1, hold => '10 minutes')",
            ITEM,
            STOCK,
        )
        # "exists" is also correct: the call may have been repeated after a lost connection.
        if created not in ("created", "exists"):
            sys.exit(f"create_sale returned {created}: set ITEM to a name that no other sale has, not {ITEM}")
        pool.wait()
        started = time.monotonic()
        with ThreadPoolExecutor(WORKERS) as workers:
            answers = workers.map(lambda number: buy(pool, f"buyer {number}"), range(BUYERS))
            statuses = Counter(status for statuses in answers for status in statuses)
        seconds = time.monotonic() - started
        sold, remaining = call(pool, "select sold, remaining from hotrow.sale(%s)", ITEM)
    confirmed = statuses.pop("confirmed", 0)
    counts = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()))
    print(f"sold {sold} of {STOCK} to {BUYERS} buyers in {seconds:.1f} s ({counts})")
    return 0 if sold == STOCK and remaining == 0 and confirmed <= STOCK else 1


if __name__ == "__main__":
    sys.exit(main())
