"""One hot row with SQLAlchemy: python sqlalchemy_orm.py setup|autocommit|wrapped|transaction URL WORKERS SECONDS"""

import sys

from sqlalchemy import create_engine, update
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import load

variant, url = sys.argv[1], sys.argv[2].replace("postgres://", "postgresql+psycopg://")
# A session opens a transaction unless the engine says otherwise.
options = {"isolation_level": "AUTOCOMMIT"} if variant == "autocommit" else {}
engine = create_engine(url, **options)


class Base(DeclarativeBase):
    pass


class Item(Base):
    __tablename__ = "item"

    id: Mapped[int] = mapped_column(primary_key=True)
    sold: Mapped[int]


def setup() -> None:
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add(Item(id=1, sold=0))
        session.commit()


def one_statement() -> None:
    with Session(engine) as session:
        session.execute(update(Item).where(Item.id == 1).values(sold=Item.sold + 1))
        session.commit()


def in_transaction() -> None:
    with Session(engine) as session:
        item = session.get_one(Item, 1, with_for_update=True)
        item.sold += 1
        session.commit()


if variant == "setup":
    setup()
else:
    sell = in_transaction if variant == "transaction" else one_statement
    load.run(sell, int(sys.argv[3]), float(sys.argv[4]))
