-- Before a run: 64 authors with a thousand followers each among 16,384 users.
insert into hotrow_bench.follower (author, user_id)
select author, 1000 + (author * 257 + follower * 13) % 16384
from generate_series(1, 64) author, generate_series(1, 1000) follower
on conflict do nothing;
