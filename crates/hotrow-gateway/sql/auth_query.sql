-- The secret of one role: none where it may not log in, has none, or had it until a time that is over.
select rolname,
       case when rolvaliduntil <= pg_catalog.now() then null else rolpassword end
  from pg_catalog.pg_authid
 where rolname = $1 and rolcanlogin
