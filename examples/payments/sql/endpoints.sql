-- Who wants to be told.
select name from payments.endpoint where active order by name
