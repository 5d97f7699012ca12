-- Unfollows a user; merged with other calls.
select * from hotrow.unfollow($1, $2)
