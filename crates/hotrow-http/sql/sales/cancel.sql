-- Cancels a reservation; merged with other calls.
select * from hotrow.cancel($1)
