-- Orders are done, many in one call.
select receipt, outcome from hotrow.complete_all($1, $2::bigint[], $3, $4)
