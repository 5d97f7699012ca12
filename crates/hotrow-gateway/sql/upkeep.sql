-- Does the next piece of the schema pack's upkeep. Returns whether more work is due at once.
select hotrow.keep()
