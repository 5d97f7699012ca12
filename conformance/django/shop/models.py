"""The shop's tables."""

from django.db import models


class Item(models.Model):
    name = models.CharField(max_length=100, unique=True)
    stock = models.IntegerField()
    tags = models.JSONField(default=list)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(stock__gte=0), name="in_stock")]


class Order(models.Model):
    buyer = models.CharField(max_length=100, db_index=True)
    created = models.DateTimeField(auto_now_add=True)


class Line(models.Model):
    order = models.ForeignKey(Order, on_delete=models.CASCADE, related_name="lines")
    item = models.ForeignKey(Item, on_delete=models.PROTECT)
    quantity = models.PositiveIntegerField()
