"""The write path of an ordinary application with SQLAlchemy's ORM: sessions, relationships, versions, locks, bulk inserts, retries."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import CheckConstraint, ForeignKey, create_engine, event, func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship, selectinload, sessionmaker
from sqlalchemy.orm.exc import StaleDataError

URL = "postgresql+psycopg://{PGUSER}@{PGHOST}:{PGPORT}/{PGDATABASE}".format(**os.environ)


class Base(DeclarativeBase):
    pass


class Item(Base):
    __tablename__ = "item"
    __table_args__ = (CheckConstraint("stock >= 0", name="in_stock"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    stock: Mapped[int]
    lines: Mapped[list["Line"]] = relationship(back_populates="item")


class Order(Base):
    __tablename__ = "order"
    id: Mapped[int] = mapped_column(primary_key=True)
    buyer: Mapped[str]
    version: Mapped[int] = mapped_column(default=0)
    lines: Mapped[list["Line"]] = relationship(back_populates="order", cascade="all, delete-orphan")
    __mapper_args__ = {"version_id_col": version}


class Line(Base):
    __tablename__ = "line"
    id: Mapped[int] = mapped_column(primary_key=True)
    order_id: Mapped[int] = mapped_column(ForeignKey("order.id"))
    item_id: Mapped[int] = mapped_column(ForeignKey("item.id"))
    quantity: Mapped[int]
    order: Mapped[Order] = relationship(back_populates="lines")
    item: Mapped[Item] = relationship(back_populates="lines")


@pytest.fixture(scope="module")
def engine():
    engine = create_engine(URL, pool_size=20)
    yield engine
    engine.dispose()


@pytest.fixture
def session(engine):
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all(Item(name=f"item {n}", stock=100) for n in range(5))
        session.commit()
        yield session


def item(session, n=0):
    return session.scalars(select(Item).where(Item.name == f"item {n}")).one()


def test_unit_of_work(session, engine):
    order = Order(buyer="ann", lines=[Line(item=item(session, n), quantity=n + 1) for n in range(3)])
    session.add(order)
    session.commit()
    with Session(engine) as other:
        loaded = other.scalars(select(Order).options(selectinload(Order.lines).selectinload(Line.item))).one()
        assert [(line.item.name, line.quantity) for line in loaded.lines] == [(f"item {n}", n + 1) for n in range(3)]
        other.delete(loaded.lines[0])
        loaded.buyer = "bob"
        other.commit()
        assert loaded.version == 2
    session.expire_all()
    assert (order.buyer, len(order.lines)) == ("bob", 2)


def test_rollback_and_savepoint(session):
    first = item(session)
    first.stock = 50
    with pytest.raises(IntegrityError), session.begin_nested():
        session.execute(update(Item).where(Item.id == first.id).values(stock=-1))
    session.commit()
    assert item(session).stock == 50
    first.stock = -5
    with pytest.raises(IntegrityError) as error:
        session.flush()
    assert error.value.orig.diag.constraint_name == "in_stock"
    session.rollback()
    assert item(session).stock == 50


def test_optimistic_version(session, engine):
    session.add(Order(buyer="ann"))
    session.commit()
    with Session(engine) as one, Session(engine) as two:
        a, b = one.scalars(select(Order)).one(), two.scalars(select(Order)).one()
        a.buyer = "bob"
        one.commit()
        b.buyer = "cleo"
        with pytest.raises(StaleDataError):
            two.commit()


def test_select_for_update(session, engine):
    make = sessionmaker(engine)

    def buy(_):
        with make.begin() as own:
            row = own.scalars(select(Item).where(Item.name == "item 0").with_for_update()).one()
            row.stock -= 1

    with ThreadPoolExecutor(10) as threads:
        list(threads.map(buy, range(60)))
    assert item(session).stock == 40


@pytest.mark.parametrize("isolation", ["AUTOCOMMIT", "READ COMMITTED"])
def test_updates_of_one_row_by_many(session, engine, isolation):
    own = engine.execution_options(isolation_level=isolation)

    def buy(_):
        with own.begin() as connection:
            statement = update(Item).where(Item.name == "item 1", Item.stock >= 1).values(stock=Item.stock - 1)
            return connection.execute(statement.returning(Item.stock)).scalar()

    with ThreadPoolExecutor(20) as threads:
        left = list(threads.map(buy, range(150)))
    assert sorted(n for n in left if n is not None) == list(range(100))
    assert left.count(None) == 50


def test_serializable_with_retries(session, engine):
    own = engine.execution_options(isolation_level="SERIALIZABLE")
    conflicts = []

    def move(_):
        while True:
            try:
                with Session(own) as mine, mine.begin():
                    total = mine.scalar(select(func.sum(Item.stock)).where(Item.name.in_(["item 2", "item 3"])))
                    mine.execute(update(Item).where(Item.name == "item 2").values(stock=total - item(mine, 3).stock + 1))
                return
            except DBAPIError as error:
                assert error.orig.sqlstate in ("40001", "40P01")
                conflicts.append(error)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(move, range(20)))
    assert item(session, 2).stock == 120


def test_upsert_and_bulk(session):
    rows = [{"name": f"bulk {n}", "stock": n} for n in range(2000)]
    keys = session.scalars(insert(Item).returning(Item.id), rows).all()
    assert len(set(keys)) == 2000
    statement = insert(Item).values(name="bulk 7", stock=1)
    statement = statement.on_conflict_do_update(index_elements=[Item.name], set_={"stock": Item.stock + 1}).returning(Item.stock)
    assert [session.scalar(statement) for _ in range(3)] == [8, 9, 10]
    session.execute(update(Item), [{"id": key, "stock": 5} for key in keys])
    session.commit()
    assert session.scalar(select(func.count()).where(Item.stock == 5)) == 2000


def test_server_side_rows_in_pieces(session):
    session.execute(insert(Item), [{"name": f"many {n}", "stock": n} for n in range(3000)])
    rows = session.scalars(select(Item.stock).where(Item.name.like("many %")).order_by(Item.stock).execution_options(yield_per=100))
    assert list(rows) == list(range(3000))


def test_two_phase(session, engine):
    with Session(engine, twophase=True) as own:
        item(own).stock = 3
        own.commit()
    assert item(session).stock == 3


def test_a_pool_that_resets_and_pings(session):
    seen = []
    engine = create_engine(URL, pool_size=1, max_overflow=0, pool_pre_ping=True, connect_args={"application_name": "shop"})
    event.listen(engine, "checkin", lambda *_: seen.append("in"))
    for _ in range(5):
        with engine.connect() as connection:
            assert connection.scalar(text("show application_name")) == "shop"
            connection.execute(text("set local statement_timeout = '5s'"))
            assert connection.scalar(text("show statement_timeout")) == "5s"
    with engine.connect() as connection:
        assert connection.scalar(text("show statement_timeout")) == "0"
    engine.dispose()
    assert len(seen) == 6


def test_a_deadlock_has_one_victim(session, engine):
    meet = threading.Barrier(2)

    def lock(order):
        with Session(engine) as own:
            try:
                for n, name in enumerate(order):
                    own.execute(update(Item).where(Item.name == name).values(stock=Item.stock + 1))
                    if n == 0:
                        meet.wait(20)
                own.commit()
                return "done"
            except DBAPIError as error:
                return error.orig.sqlstate

    with ThreadPoolExecutor(2) as threads:
        outcomes = list(threads.map(lock, [("item 0", "item 1"), ("item 1", "item 0")]))
    assert sorted(outcomes) == ["40P01", "done"]
    assert (item(session, 0).stock, item(session, 1).stock) == (101, 101)
