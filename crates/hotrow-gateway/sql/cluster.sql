-- The identifier that a server shares with its standbys only. The server refuses the query if the role cannot read it.
select system_identifier
  from pg_catalog.pg_control_system()
