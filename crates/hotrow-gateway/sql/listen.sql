-- From now on the connection hears when there is something for calls that wait. The pack says so with pg_notify.
listen hotrow_wake
