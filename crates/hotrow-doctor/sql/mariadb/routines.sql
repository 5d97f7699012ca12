-- What packing needs, as far as the doctor's account can see it.
select lower(routine_name) from information_schema.routines where routine_schema = 'hotrow'
