-- Follows a user; merged with other calls.
select * from hotrow.follow($1, $2, $3)
