-- Before a run: there are no waiting and no processed orders.
truncate hotrow_bench.waiting, hotrow_bench.sharded, hotrow_bench.leased, hotrow_bench.same, hotrow_bench.processed,
    hotrow_bench.worked, hotrow_bench.begun, hotrow.queue, hotrow.queue_order, hotrow.processed_order, hotrow.queue_lease, hotrow.queue_ready,
    hotrow.queue_group, hotrow.queue_dead, hotrow.queue_head, hotrow.queue_tail, hotrow.queue_lock
    restart identity;
select hotrow_bench.drop_elsewhere();
