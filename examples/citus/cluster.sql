-- Makes the nodes one cluster. The setup runs once, on an empty coordinator.
select citus_set_coordinator_host('coordinator', 5432);
select citus_add_node('worker1', 5432);
select citus_add_node('worker2', 5432);
