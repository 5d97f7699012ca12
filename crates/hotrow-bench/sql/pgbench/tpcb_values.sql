\set aid random(1, 100000)
\set tid random(1, 10)
\set delta random(-5000, 5000)
