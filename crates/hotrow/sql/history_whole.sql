-- Whether nothing was ever forgotten: the ring began with part 0, which was then emptied by no turn of it.
select p.opened_at = (select min(o.opened_at) from hotrow.history_part o) from hotrow.history_part p where p.part = 0
