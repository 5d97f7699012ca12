-- The number of rows of each kind to check.
select (select count(*) from hotrow.sale), (select count(*) from hotrow.reservation), (select count(*) from hotrow.buyer),
    (select count(*) from hotrow.request), (select count(*) from hotrow.queue), (select count(*) from hotrow.queue_order)
