-- Makes a mark for the role that has logged in. One row with its name, or null if a connection of this role's can't set one.
select hotrow.open_mark()
