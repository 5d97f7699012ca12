insert into hotrow_bench.inv (id, stock, sold) values
    (1, 0, 0), (2, 0, 0), (3, 0, 0), (4, 0, 0), (5, 0, 0),
    (6, 0, 0), (7, 0, 0), (8, 0, 0), (9, 0, 0), (10, 0, 0),
    (11, 0, 0), (12, 0, 0), (13, 0, 0), (14, 0, 0), (15, 0, 0),
    (16, 0, 0), (17, 0, 0), (18, 0, 0), (19, 0, 0), (20, 0, 0)
on conflict (id) do update set stock = inv.stock - 1, sold = inv.sold + 1;
