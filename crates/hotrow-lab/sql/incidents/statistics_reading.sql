-- The executions that the statistics show, and the number of rows that contradict each other: more than one row, or different
-- counts in a row, because each execution is a root execution.
select
    coalesce(sum(count), 0)::bigint as done,
    (count(*) filter (where count <> root_count) + greatest(count(*) - 1, 0))::bigint as broken
from hotrow_bench.workflow_statistics
