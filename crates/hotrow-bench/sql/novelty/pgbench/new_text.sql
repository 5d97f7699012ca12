\set id random(1, :rows)
\set text random(0, 16777215)
