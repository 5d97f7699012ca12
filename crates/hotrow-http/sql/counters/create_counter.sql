-- Creates a counter, or returns whether one exists with the same settings.
select status from hotrow.create_counter($1, $2, $3, $4)
