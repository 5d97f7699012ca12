-- Creates a queue, or returns whether one exists with the same settings.
select status from hotrow.create_queue($1, $2, $3, $4, $5, $6, $7, $8)
