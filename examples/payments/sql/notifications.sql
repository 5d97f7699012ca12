-- Notifications of one endpoint in one state, the oldest first.
select event, tries, error, created_at, delivered_at
from payments.notification where endpoint = $1 and state = $2 order by created_at, event limit $3
