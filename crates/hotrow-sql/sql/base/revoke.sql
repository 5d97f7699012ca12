-- Revokes EXECUTE from PUBLIC, which gets it on every new function by default. Runs after each installation, before the grants.

revoke execute on all functions in schema hotrow from public;
