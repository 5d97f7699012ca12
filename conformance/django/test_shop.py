"""The write path of an ordinary application with Django: models, transactions, locks, bulk writes, migrations."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.core.management import call_command
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import Count, F, ProtectedError, Sum
from shop.models import Item, Line, Order

pytestmark = pytest.mark.usefixtures("shop")


def in_threads(work, count, threads=10):
    def closed(n):
        try:
            return work(n)
        finally:
            connection.close()

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(closed, range(count)))


def test_models_and_relations():
    order = Order.objects.create(buyer="ann")
    Line.objects.bulk_create(Line(order=order, item=item, quantity=2) for item in Item.objects.order_by("id"))
    total = Order.objects.annotate(n=Count("lines"), sum=Sum("lines__quantity")).get()
    assert (total.n, total.sum) == (5, 10)
    assert [line.item.name for line in order.lines.select_related("item").order_by("item")] == [f"item {n}" for n in range(5)]
    with pytest.raises(ProtectedError):
        Item.objects.first().delete()
    order.delete()
    assert not Line.objects.exists()


def test_updates_by_expression():
    for n in range(10):
        assert Item.objects.filter(name="item 0", stock__gte=1).update(stock=F("stock") - 1) == 1
    item = Item.objects.get(name="item 0")
    assert item.stock == 90
    item.tags = ["hot", {"deep": [1, 2]}]
    item.save(update_fields=["tags"])
    item.refresh_from_db()
    assert item.tags == ["hot", {"deep": [1, 2]}]
    with pytest.raises(IntegrityError):
        Item.objects.filter(name="item 0").update(stock=-1)
    assert Item.objects.get(name="item 0").stock == 90


def test_updates_of_one_row_by_many_threads():
    def buy(_):
        return Item.objects.filter(name="item 1", stock__gte=1).update(stock=F("stock") - 1)

    assert sum(in_threads(buy, 150)) == 100
    assert Item.objects.get(name="item 1").stock == 0


def test_select_for_update():
    def buy(_):
        with transaction.atomic():
            item = Item.objects.select_for_update().get(name="item 2")
            item.stock -= 1
            item.save()
            Order.objects.create(buyer="many")

    in_threads(buy, 60)
    assert (Item.objects.get(name="item 2").stock, Order.objects.count()) == (40, 60)


def test_select_for_update_nowait_and_skip_locked():
    with transaction.atomic():
        Item.objects.select_for_update().get(name="item 0")

        def look(_):
            with transaction.atomic():
                free = list(Item.objects.select_for_update(skip_locked=True).order_by("id"))
            with pytest.raises(OperationalError), transaction.atomic():
                Item.objects.select_for_update(nowait=True).get(name="item 0")
            return len(free)

        assert in_threads(look, 1) == [4]


def test_nested_atomic_blocks():
    received = []
    with transaction.atomic():
        Order.objects.create(buyer="outer")
        with pytest.raises(IntegrityError), transaction.atomic():
            Item.objects.create(name="item 0", stock=1)
        transaction.on_commit(lambda: received.append("committed"))
        assert not received
    assert received == ["committed"]
    with pytest.raises(ValueError), transaction.atomic():
        Order.objects.create(buyer="never")
        raise ValueError
    assert [order.buyer for order in Order.objects.all()] == ["outer"]


def test_bulk_writes():
    items = Item.objects.bulk_create((Item(name=f"bulk {n}", stock=n) for n in range(1500)), batch_size=400)
    assert len({item.pk for item in items}) == 1500
    for item in items:
        item.stock = 7
    assert Item.objects.bulk_update(items, ["stock"], batch_size=500) == 1500
    Item.objects.bulk_create(
        [Item(name="bulk 1", stock=9)], update_conflicts=True, unique_fields=["name"], update_fields=["stock"]
    )
    Item.objects.bulk_create([Item(name="bulk 2", stock=9)], ignore_conflicts=True)
    stock = dict(Item.objects.filter(name__in=["bulk 1", "bulk 2"]).values_list("name", "stock"))
    assert stock == {"bulk 1": 9, "bulk 2": 7}
    assert len(list(Item.objects.order_by("id").iterator(chunk_size=100))) == 1505


def test_get_or_create_by_many_threads():
    def find(_):
        return Item.objects.get_or_create(name="new", defaults={"stock": 1})

    found = in_threads(find, 30)
    assert sum(created for _, created in found) == 1
    assert len({item.pk for item, _ in found}) == 1


def test_users_and_sessions():
    user = User.objects.create_user("ann", password="secret")
    assert user.check_password("secret")
    store = SessionStore()
    store["basket"] = [1, 2, 3]
    store.save()
    assert SessionStore(store.session_key)["basket"] == [1, 2, 3]
    store.flush()
    assert not SessionStore(store.session_key).exists(store.session_key)


def test_raw_sql_and_session_settings():
    with connection.cursor() as cursor:
        cursor.execute("set local statement_timeout = '5s'")
        cursor.execute("update shop_item set stock = stock - %s where name = %s returning stock", [1, "item 3"])
        assert cursor.fetchone() == (99,)
        cursor.execute("show timezone")
        assert cursor.fetchone() == ("UTC",)
        cursor.execute("select set_config('work_mem', '5MB', false)")
        cursor.execute("show work_mem")
        assert cursor.fetchone() == ("5MB",)
    connection.close()
    with connection.cursor() as cursor:
        cursor.execute("show work_mem")
        assert cursor.fetchone() != ("5MB",)


def test_migrations_back_and_forth():
    call_command("migrate", "shop", "zero", verbosity=0)
    assert "shop_item" not in connection.introspection.table_names()
    call_command("migrate", "shop", verbosity=0)
    assert Item.objects.get().stock == 2
