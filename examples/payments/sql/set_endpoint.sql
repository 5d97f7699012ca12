-- Creates or changes a dependent service.
insert into payments.endpoint (name, url, secret, active) values ($1, $2, $3, $4)
on conflict (name) do update set url = excluded.url, secret = excluded.secret, active = excluded.active
