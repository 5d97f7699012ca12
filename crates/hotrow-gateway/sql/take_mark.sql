-- Takes a mark for this connection: where it stands; null if another backend has it, and no row if it has another owner by now.
-- $1: the mark, with its generation.
select m.at from hotrow.take_mark($1::pg_catalog.text) as m (at)
