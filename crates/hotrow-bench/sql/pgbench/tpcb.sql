begin;
update hotrow_bench.account set balance = balance + :delta where aid = :aid;
select balance from hotrow_bench.account where aid = :aid;
update hotrow_bench.teller set balance = balance + :delta where tid = :tid;
update hotrow_bench.branch set balance = balance + :delta where bid = 1;
insert into hotrow_bench.history (tid, bid, aid, delta, mtime) values (:tid, 1, :aid, :delta, current_timestamp);
end;
