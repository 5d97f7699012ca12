-- The secret of one role. It is null if the role cannot log in, has no secret, or has a secret that has expired.
select rolname,
       case when rolvaliduntil operator(pg_catalog.<=) pg_catalog.now() then null else rolpassword end
  from pg_catalog.pg_authid
 where rolname operator(pg_catalog.=) $1 and rolcanlogin
