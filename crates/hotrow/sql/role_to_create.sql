-- Whether this user can create roles, and the quoted name of the role that gets the grants.
select r.rolsuper or r.rolcreaterole, pg_catalog.quote_ident($1)
from pg_catalog.pg_roles r
where r.rolname = session_user
