"""A small shop: items, orders and their lines."""
