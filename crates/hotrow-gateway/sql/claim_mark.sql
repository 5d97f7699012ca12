-- Takes a mark for this connection and returns its value. The value is null if another backend has the mark. There is
-- no row if the mark has another owner now.
-- $1: the mark, with its generation.
select m.value from hotrow.claim_mark($1::pg_catalog.text) as m (value)
