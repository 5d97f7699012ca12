-- Each client has its own inboxes and reads them in turn, so that no call gets the rest of another call.
\set previous (:previous + 1) % greatest(1024 / :clients, 1)
\set user 1 + (:previous * :clients + :client_id) % 1024
