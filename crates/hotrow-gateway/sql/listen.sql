-- The connection receives a notification when a waiting call may find something. The pack sends it with pg_notify.
listen hotrow_wake
