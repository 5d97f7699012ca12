-- Settings of the doctor's session: it reads only, waits for nothing, and runs no code of the tables' owners.
-- Without a search path, no name in a statement means an object of a user.
-- With row_security off, reading a table under a policy is an error; the policy's functions do not run.
-- With constraint_exclusion off, planning does not evaluate the checks of a table.
-- A view in a table's place could run its owner's code. A server that cannot refuse views has no such setting, and the
-- doctor reads no rows there.
set search_path to pg_catalog;
set default_transaction_read_only to on;
set statement_timeout to 5000;
set lock_timeout to 200;
set row_security to off;
set constraint_exclusion to off;
set application_name to 'hotrow doctor';
select pg_catalog.set_config(s.name, 'view, foreign-table', false)
  from pg_catalog.pg_settings s
 where s.name operator(pg_catalog.=) 'restrict_nonsystem_relation_kind';
