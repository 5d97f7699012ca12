-- The parts of the rings that are written to: history, orders.
select s.history_part, r.part from hotrow.setting s cross join hotrow.queue_ring r where s.one and r.one
