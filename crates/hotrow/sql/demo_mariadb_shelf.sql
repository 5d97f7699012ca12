-- The stock after a round, for the comparison with the acknowledged sales.
select stock, sold from hotrow_demo.item where id = 1
