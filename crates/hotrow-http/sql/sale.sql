-- Reads a sale. JSON cannot express infinity: such a time becomes null.
select item, remaining, held, sold, per_buyer, case when pg_catalog.isfinite(starts_at) then starts_at end as starts_at,
    case when pg_catalog.isfinite(ends_at) then ends_at end as ends_at, hold
from hotrow.sale($1)
