-- Follows a user no longer; merged with other calls.
select * from hotrow.unfollow($1, $2)
