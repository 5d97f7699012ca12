-- Does the next piece of the hotrow schema's maintenance. Returns whether more work is due at once.
select hotrow.keep()
