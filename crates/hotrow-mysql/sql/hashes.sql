-- What the server keeps of the passwords of a user's accounts.
select json_extract(priv, '$**.authentication_string') from mysql.global_priv where user = {user}
