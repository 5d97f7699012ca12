-- How much of the feeds there is to check.
select (select count(*) from hotrow.inbox), (select count(*) from hotrow.inbox_entry), (select count(*) from hotrow.post)
