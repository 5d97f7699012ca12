"""One hot row with Peewee: python peewee_orm.py setup|autocommit|transaction URL WORKERS SECONDS"""

import sys

from peewee import IntegerField, Model
from playhouse.db_url import connect

import load

variant, url = sys.argv[1], sys.argv[2]
database = connect(url, prefer_psycopg3=True)


class Item(Model):
    sold = IntegerField()

    class Meta:
        database = database


def setup() -> None:
    database.create_tables([Item])
    Item.create(sold=0)


def autocommit() -> None:
    Item.update(sold=Item.sold + 1).where(Item.id == 1).execute()


def in_transaction() -> None:
    with database.atomic():
        item = Item.select().where(Item.id == 1).for_update().get()
        item.sold += 1
        item.save()


if variant == "setup":
    setup()
else:
    update = {"autocommit": autocommit, "transaction": in_transaction}[variant]
    load.run(update, int(sys.argv[3]), float(sys.argv[4]))
