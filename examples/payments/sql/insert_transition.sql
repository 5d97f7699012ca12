-- One line of the log. Inserts nothing if it exists.
insert into payments.transition (intent, version, state_before, state, attempt)
values ($1, $2, $3, $4, $5)
on conflict (intent, version) do nothing
