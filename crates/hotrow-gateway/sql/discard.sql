-- Run before another session gets the connection, which must see neither currval and lastval nor cached values of this
-- session, nor get its notifications.
discard sequences; unlisten *
