-- The ten statements of a payment, each with a commit of its own. The ninth one changes the row that all payments share.
insert into aurora.request (id, payment) values (:id, :id);
insert into aurora.payment (id, merchant, amount, state) values (:id, 1, :amount, 'created');
insert into aurora.transition (payment, n, state) values (:id, 1, 'created');
insert into aurora.attempt (id, payment, state) values (:id, :id, 'sent');
update aurora.payment set state = 'pending' where id = :id and state = 'created';
update aurora.attempt set state = 'succeeded', reference = :id where id = :id;
update aurora.payment set state = 'paid' where id = :id and state = 'pending';
insert into aurora.transition (payment, n, state) values (:id, 2, 'paid');
update aurora.merchant set payments = payments + 1, amount = amount + :amount where id = 1;
insert into aurora.outbox (id, payment, event) values (:id, :id, 'paid');
