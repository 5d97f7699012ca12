-- Makes a mark for the role that has logged in. Returns one row with its name, or null if a connection of this role
-- cannot set one.
select hotrow.open_mark()
