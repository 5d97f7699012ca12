-- What the shelf holds after a round, to be compared with the acknowledged sales.
select stock, sold from hotrow_demo.item where id = 1
