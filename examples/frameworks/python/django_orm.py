"""One hot row with Django's ORM: python django_orm.py setup|autocommit|transaction URL WORKERS SECONDS"""

import sys
from urllib.parse import urlsplit

import django
from django.conf import settings
from django.db import connection, models, transaction

import load

variant, url = sys.argv[1], urlsplit(sys.argv[2])
settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": url.hostname,
            "PORT": url.port,
            "USER": url.username,
            "NAME": url.path[1:],
        }
    }
)
django.setup()


class Item(models.Model):
    sold = models.IntegerField()

    class Meta:
        app_label = "shop"


def setup() -> None:
    with connection.schema_editor() as editor:
        editor.create_model(Item)
    Item.objects.create(id=1, sold=0)


def autocommit() -> None:
    Item.objects.filter(pk=1).update(sold=models.F("sold") + 1)


def in_transaction() -> None:
    with transaction.atomic():
        item = Item.objects.select_for_update().get(pk=1)
        item.sold += 1
        item.save()


if variant == "setup":
    setup()
else:
    update = {"autocommit": autocommit, "transaction": in_transaction}[variant]
    load.run(update, int(sys.argv[3]), float(sys.argv[4]))
