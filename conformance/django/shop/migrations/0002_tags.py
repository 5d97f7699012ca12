"""Items get tags and may not be oversold; rows are changed on the way, and an index is made outside of a transaction."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


def fill(apps, _):
    item = apps.get_model("shop", "Item")
    item.objects.create(name="migrated", stock=1)
    item.objects.filter(name="migrated").update(stock=models.F("stock") + 1)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("shop", "0001_tables")]
    operations = [
        migrations.AddField("Item", "tags", models.JSONField(default=list)),
        migrations.AddConstraint("Item", models.CheckConstraint(condition=models.Q(stock__gte=0), name="in_stock")),
        migrations.RunPython(fill, migrations.RunPython.noop),
        AddIndexConcurrently("Line", models.Index(fields=["quantity"], name="line_quantity")),
    ]
