-- Stops a queue from handing out orders.
select status from hotrow.pause($1)
