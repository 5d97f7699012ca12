-- Reservations of items without a sale: one sentence each.
select format('reservation %s: there is no sale %s', r.reservation_id, r.item)
from hotrow.reservation r left join hotrow.sale s on s.item = r.item where s.item is null
