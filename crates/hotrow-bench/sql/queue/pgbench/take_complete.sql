select * from hotrow.take(:run, 1, '30 s') \gset
select * from hotrow.complete(:run, :receipt);
