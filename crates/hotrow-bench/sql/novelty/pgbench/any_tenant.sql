\set tenant random(1, :rows)
