-- Settings of the doctor's session: it reads only, waits for nothing, and runs no code of the tables' owners.
-- With row_security off, reading a table under a policy is an error; the policy's functions do not run.
set default_transaction_read_only to on;
set statement_timeout to 5000;
set lock_timeout to 200;
set row_security to off;
set application_name to 'hotrow doctor';
