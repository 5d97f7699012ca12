-- Before a run: the rows that the statements insert do not exist.
truncate hotrow_bench.workflow_statistics, hotrow_bench.client_application;
