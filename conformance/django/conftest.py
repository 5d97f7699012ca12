"""Django's settings, from the environment. Each test begins with the tables as the migrations create them."""

import os

import django
import pytest
from django.conf import settings

settings.configure(
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django.contrib.sessions", "shop"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": os.environ["PGDATABASE"],
            "USER": os.environ["PGUSER"],
            "HOST": os.environ["PGHOST"],
            "PORT": os.environ["PGPORT"],
            "CONN_MAX_AGE": 600,
            "CONN_HEALTH_CHECKS": True,
        }
    },
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    SECRET_KEY="not one",
    USE_TZ=True,
)
django.setup()


@pytest.fixture(scope="session")
def tables():
    from django.core.management import call_command

    call_command("migrate", verbosity=0, interactive=False)


@pytest.fixture
def shop(tables):
    from django.core.management import call_command
    from shop.models import Item

    call_command("flush", verbosity=0, interactive=False)
    Item.objects.bulk_create(Item(name=f"item {n}", stock=100) for n in range(5))
    yield
    from django.db import connection

    connection.close()
