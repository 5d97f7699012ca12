"""One hot row with asyncpg's pool: python asyncpg_pool.py setup|autocommit|transaction URL WORKERS SECONDS"""

import asyncio
import sys
from collections.abc import Awaitable, Callable

import asyncpg

import load

variant, url = sys.argv[1], sys.argv[2]


async def setup() -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("create table items (id int primary key, sold int not null)")
    await connection.execute("insert into items values ($1, $2)", 1, 0)
    await connection.close()


async def autocommit(pool: asyncpg.Pool) -> None:
    await pool.execute("update items set sold = sold + 1 where id = $1", 1)


async def in_transaction(pool: asyncpg.Pool) -> None:
    async with pool.acquire() as connection, connection.transaction():
        sold = await connection.fetchval("select sold from items where id = $1 for update", 1)
        await connection.execute("update items set sold = $1 where id = $2", sold + 1, 1)


async def connect(size: int) -> Callable[[], Awaitable[None]]:
    pool = await asyncpg.create_pool(url, min_size=size, max_size=size)
    update = {"autocommit": autocommit, "transaction": in_transaction}[variant]
    return lambda: update(pool)


if variant == "setup":
    asyncio.run(setup())
else:
    load.run_tasks(connect, int(sys.argv[3]), float(sys.argv[4]))
