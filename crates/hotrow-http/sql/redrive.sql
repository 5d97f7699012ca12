-- Redrives dead letters.
select redriven from hotrow.redrive($1, $2, $3) redriven
