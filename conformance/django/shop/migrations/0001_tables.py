"""Items without tags, orders, lines."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    operations = [
        migrations.CreateModel("Item", [
            ("id", models.BigAutoField(primary_key=True, serialize=False)),
            ("name", models.CharField(max_length=100, unique=True)),
            ("stock", models.IntegerField()),
        ]),
        migrations.CreateModel("Order", [
            ("id", models.BigAutoField(primary_key=True, serialize=False)),
            ("buyer", models.CharField(max_length=100, db_index=True)),
            ("created", models.DateTimeField(auto_now_add=True)),
        ]),
        migrations.CreateModel("Line", [
            ("id", models.BigAutoField(primary_key=True, serialize=False)),
            ("order", models.ForeignKey("shop.Order", django.db.models.deletion.CASCADE, related_name="lines")),
            ("item", models.ForeignKey("shop.Item", django.db.models.deletion.PROTECT)),
            ("quantity", models.PositiveIntegerField()),
        ]),
    ]
