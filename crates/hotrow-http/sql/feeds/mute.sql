-- Keeps a user's posts away, or lets them come again.
select status from hotrow.mute($1, $2, $3)
