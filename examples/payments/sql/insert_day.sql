-- A merchant's first payment of the day.
insert into payments.merchant_day (merchant, day, currency) values ($1, $2, $3)
on conflict (merchant, day, currency) do nothing
