-- Facts about the server that the demo prints first: its version, and whether an acknowledged commit is on disk.
select current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit')
