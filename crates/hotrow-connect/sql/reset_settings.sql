-- No view lists settings that extensions or users have made up (app.tenant), so left_behind.sql cannot report them.
-- RESET ALL removes their values before another session gets the connection. It also resets application_name.
reset all
