-- Lists a page of the counters.
select counter, strategy, minimum, maximum, value, version, changed_at from hotrow.list_counters($1, $2)
