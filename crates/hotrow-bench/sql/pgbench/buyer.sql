\set buyer random(1, 100000)
