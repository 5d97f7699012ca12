-- The transaction of each client of `--profile load`: all of them update one row.
update item set stock = stock + 1 where id = 7 returning stock;
