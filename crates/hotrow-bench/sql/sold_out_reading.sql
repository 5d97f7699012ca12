-- What the rows say: nothing may be reserved where nothing is left.
select (select count(*) from hotrow.reservation) as done,
    (select count(*) from hotrow.sale where remaining <> 0) as broken
