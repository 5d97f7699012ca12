-- Mutes or unmutes a user's posts.
select status from hotrow.mute($1, $2, $3)
