-- How much of each there is to check.
select (select count(*) from hotrow.sale), (select count(*) from hotrow.reservation), (select count(*) from hotrow.buyer),
    (select count(*) from hotrow.request)
