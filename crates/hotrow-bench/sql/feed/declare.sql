-- The functions leave nothing in the session.
select hotrow.add_pack_rule('hotrow_bench.push(bigint,bigint,timestamp,text,int)', '1'),
    hotrow.add_pack_rule('hotrow_bench.consume(bigint,int,text)', '1');
