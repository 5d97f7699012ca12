-- Opens a sale, or returns whether one exists with the same settings.
select status from hotrow.create_sale($1, $2, $3, $4, $5, $6)
