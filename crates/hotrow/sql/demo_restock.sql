-- Puts a fresh stock on the shelf, with nothing sold.
select hotrow_demo.restock($1)
