\set tenant 1 + :client_id % :rows
