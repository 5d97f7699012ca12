-- A dead one is told again.
select hotrow.redrive($1, 1, $2)
