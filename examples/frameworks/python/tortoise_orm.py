"""One hot row with Tortoise ORM: python tortoise_orm.py setup|autocommit|transaction URL WORKERS SECONDS"""

import asyncio
import sys
from collections.abc import Awaitable, Callable

from tortoise import Tortoise, fields
from tortoise.expressions import F
from tortoise.models import Model
from tortoise.transactions import in_transaction

import load

variant, url = sys.argv[1], sys.argv[2].replace("postgres://", "asyncpg://")


class Item(Model):
    id = fields.IntField(primary_key=True)
    sold = fields.IntField()


async def setup() -> None:
    await connect(1)
    await Tortoise.generate_schemas()
    await Item.create(sold=0)
    await Tortoise.close_connections()


async def autocommit() -> None:
    await Item.filter(id=1).update(sold=F("sold") + 1)


async def transaction() -> None:
    async with in_transaction() as connection:
        item = await Item.select_for_update().using_db(connection).get(id=1)
        item.sold += 1
        await item.save(using_db=connection)


async def connect(size: int) -> Callable[[], Awaitable[None]]:
    await Tortoise.init(db_url=f"{url}?minsize={size}&maxsize={size}", modules={"models": [__name__]})
    return transaction if variant == "transaction" else autocommit


if variant == "setup":
    asyncio.run(setup())
else:
    load.run_tasks(connect, int(sys.argv[3]), float(sys.argv[4]))
