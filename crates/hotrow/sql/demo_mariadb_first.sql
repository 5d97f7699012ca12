-- A buyer's first statement, before the round: it sells nothing, because there is no such item.
UPDATE hotrow_demo.item SET sold = sold WHERE id = 0
