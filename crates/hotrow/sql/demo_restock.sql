-- Restores the stock, with nothing sold.
select hotrow_demo.restock($1)
