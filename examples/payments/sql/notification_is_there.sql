-- Whether an endpoint is, or was, to be told an event.
select from payments.notification where event = $1 and endpoint = $2
