-- Removes all that the demo made.
drop schema hotrow_demo cascade
