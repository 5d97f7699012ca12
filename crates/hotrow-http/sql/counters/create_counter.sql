-- Makes a counter, or says whether there is one with the same settings.
select status from hotrow.create_counter($1, $2, $3, $4)
