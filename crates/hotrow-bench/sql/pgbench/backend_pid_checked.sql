-- Warm-up: a transaction must stay on one server process, also through a gateway or pooler.
begin;
select pg_backend_pid() as first \gset
select pg_backend_pid() as second \gset
commit;
\if :first <> :second
select 'wrong answer'::int;
\endif
