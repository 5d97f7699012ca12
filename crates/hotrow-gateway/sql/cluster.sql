-- The identifier that a server shares with its standbys and with nobody else. Refused where the role may not know it.
select system_identifier
  from pg_catalog.pg_control_system()
