-- One purchase, as any shop writes it: the row is the lock, the condition refuses when nothing is left.
UPDATE hotrow_demo.item SET stock = stock - 1, sold = sold + 1 WHERE id = $1 AND stock >= 1
