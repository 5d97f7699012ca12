-- Each client has inboxes of its own and reads them in turn, so that no call gets what another one left.
\set previous (:previous + 1) % greatest(1024 / :clients, 1)
\set user 1 + (:previous * :clients + :client_id) % 1024
