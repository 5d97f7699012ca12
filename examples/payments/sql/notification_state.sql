-- Where a notification is.
select state from payments.notification where event = $1 and endpoint = $2
