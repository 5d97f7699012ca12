\set first random(2, :rows / 4)
\set second random(:rows / 4 + 1, :rows / 2)
\set third random(:rows / 2 + 1, :rows / 4 * 3)
\set fourth random(:rows / 4 * 3 + 1, :rows)
