-- One event for each decided attempt; its id follows from the attempt's, so that it is written once.
insert into payments.outbox (id, aggregatetype, aggregateid, type, payload)
values ($1, 'payment', $2, $3, $4)
on conflict (id) do nothing
