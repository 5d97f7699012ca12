\set user random(1, 2000000000)
\set from :user + 1
select hotrow_bench.push(:user, :from, now()::timestamp, :content, 0);
