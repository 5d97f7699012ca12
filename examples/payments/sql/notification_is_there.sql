-- Whether the notification of an event to an endpoint exists.
select from payments.notification where event = $1 and endpoint = $2
