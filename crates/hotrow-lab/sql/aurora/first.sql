-- A session's first statement, before the load. It changes nothing, because there is no such merchant.
update aurora.merchant set payments = payments where id = 0;
