-- Opens a mark for the role that has logged in: one that is no longer used, or a new one. Returns one row with its name, or
-- null if a connection of this role cannot set one or the role has as many as it can have.
select hotrow.open_mark()
