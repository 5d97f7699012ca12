-- A sold-out item must have no reservations.
select (select count(*) from hotrow.reservation) as done,
    (select count(*) from hotrow.sale where remaining <> 0) as broken
