-- How much of each there is to check.
select (select count(*) from hotrow.sale), (select count(*) from hotrow.reservation), (select count(*) from hotrow.buyer),
    (select count(*) from hotrow.request), (select count(*) from hotrow.queue), (select count(*) from hotrow.queue_order),
    (select count(*) from hotrow.inbox), (select count(*) from hotrow.inbox_entry), (select count(*) from hotrow.post)
