-- Drops everything that the demo has created.
drop schema hotrow_demo cascade
