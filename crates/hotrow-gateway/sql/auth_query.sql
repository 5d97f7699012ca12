-- The secret of one role: none where it may not log in, has none, or had it until a time that is over.
select rolname,
       case when rolvaliduntil operator(pg_catalog.<=) pg_catalog.now() then null else rolpassword end
  from pg_catalog.pg_authid
 where rolname operator(pg_catalog.=) $1 and rolcanlogin
