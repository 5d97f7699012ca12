-- What the demo says about the server before it starts: its version and whether an answered commit is on disk.
select current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit')
