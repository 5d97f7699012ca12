\set root 1
\set workflow 7
insert into hotrow_bench.workflow_statistics (count, root_count, name, workflow_id, latest_event)
values (1, :root, 'production_success', :workflow, current_timestamp)
on conflict (name, workflow_id) do update set
    count = hotrow_bench.workflow_statistics.count + 1,
    root_count = hotrow_bench.workflow_statistics.root_count + :root,
    latest_event = current_timestamp
returning *;
