-- Read before an attempt is decided. See recount_close.sql.
select epoch from payments.merchant_day where merchant = $1 and day = $2 and currency = $3
