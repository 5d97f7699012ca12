-- Adds to a sale's stock.
select * from hotrow.restock($1, $2, $3)
