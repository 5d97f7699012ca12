-- The next piece of the schema pack's upkeep, and whether there is more at once.
select hotrow.keep()
