-- Those of one endpoint in one state, the newest first.
select event, endpoint, state, tries, error, created_at, delivered_at
from payments.notification where endpoint = $1 and state = $2 order by created_at desc limit $3
