-- The session's statements must not find the gateway's channel.
unlisten hotrow_marker
