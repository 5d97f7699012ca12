-- One purchase as in any shop: the row is the lock, and the condition rejects the purchase if nothing is left.
UPDATE hotrow_demo.item SET stock = stock - 1, sold = sold + 1 WHERE id = 1 AND stock >= 1
