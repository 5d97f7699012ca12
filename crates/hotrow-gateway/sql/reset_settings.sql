-- What is left behind does not show everything: no view lists settings that extensions or users have made up (app.tenant).
-- Their values are taken away before another session gets the connection. RESET ALL also resets application_name.
reset all
