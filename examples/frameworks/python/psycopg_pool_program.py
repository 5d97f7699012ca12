"""One hot row with psycopg's pool: python psycopg_pool_program.py setup|autocommit|wrapped|transaction URL WORKERS SECONDS"""

import sys
from collections.abc import Callable

import psycopg
from psycopg_pool import ConnectionPool

import load

variant, url = sys.argv[1], sys.argv[2]


def setup() -> None:
    with psycopg.connect(url) as connection:
        connection.execute("create table items (id int primary key, sold int not null)")
        connection.execute("insert into items values (%s, %s)", (1, 0))


def one_statement(pool: ConnectionPool) -> None:
    with pool.connection() as connection:
        connection.execute("update items set sold = sold + 1 where id = %s", (1,))


def in_transaction(pool: ConnectionPool) -> None:
    with pool.connection() as connection:
        (sold,) = connection.execute("select sold from items where id = %s for update", (1,)).fetchone()
        connection.execute("update items set sold = %s where id = %s", (sold + 1, 1))


def connect(size: int) -> Callable[[], None]:
    # A connection of the pool opens a transaction before its first statement unless it is in autocommit mode.
    pool = ConnectionPool(url, min_size=size, kwargs={"autocommit": variant == "autocommit"}, open=True)
    update = in_transaction if variant == "transaction" else one_statement
    return lambda: update(pool)


if variant == "setup":
    setup()
else:
    load.run_threads(connect, int(sys.argv[3]), float(sys.argv[4]))
