-- The settings under which statements may be packed.
select pg_catalog.current_setting('default_transaction_isolation'),
       pg_catalog.current_setting('standard_conforming_strings'),
       pg_catalog.current_setting('client_encoding')
