-- Sets the mark of a new connection to the connection's own number, before its first batch. The transaction is durable when
-- the server has answered, so a crash brings no older value back, except with synchronous_commit = off: then the older
-- value proves nothing.
-- $1: the sequence. $2: the number.
select pg_catalog.setval($1::pg_catalog.text::pg_catalog.regclass, $2::pg_catalog.text::pg_catalog.int8)
