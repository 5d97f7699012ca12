-- Restores the stock, with nothing sold.
update hotrow_demo.item set stock = :stock, sold = 0 where id = 1
