-- One event for each decided attempt. Its ID is derived from the attempt's, so it is written once.
insert into payments.outbox (id, aggregatetype, aggregateid, type, payload)
values ($1, 'payment', $2, $3, $4)
on conflict (id) do nothing
