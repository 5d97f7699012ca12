-- Before a run: a new branch and new tellers in new pages, no history, and unchanged accounts.
truncate hotrow_bench.branch, hotrow_bench.teller, hotrow_bench.history;
insert into hotrow_bench.branch values (1, 0);
insert into hotrow_bench.teller select tid, 0 from generate_series(1, 10) tid;
update hotrow_bench.account set balance = 0 where balance <> 0;
