\set id random(1, :rows)
\set text 12345678
