-- A merchant's totals of one day, one row for each currency.
select currency, attempts, declined, authorized, captured, refunded
from payments.merchant_day where merchant = $1 and day = $2 order by currency
