-- The endpoint has the notification.
select outcome from hotrow.complete($1, $2)
