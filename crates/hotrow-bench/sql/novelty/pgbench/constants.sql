update hotrow_bench.inv set
    stock = stock - 1,
    sold = sold + 1,
    seen = timestamptz '2026-01-01 10:20:30.:text' + interval ':text seconds',
    ip = nullif('10.:high.:middle.:low', '')::inet,
    note = concat_ws('-', 'sale:text', lpad(':text', 8, '0'), substring('item:text', 1, 3), format('%s', 'a:text'))
where id = :id and stock >= 1;
