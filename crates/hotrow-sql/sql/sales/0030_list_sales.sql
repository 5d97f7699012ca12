-- A page of the sales, for operators.

-- Lists sales after an item, each with the numbers of hotrow.sale. All of them see the caller's snapshot. Takes no lock.
create function hotrow.list_sales(after text default '', max int default 100)
returns setof hotrow.sale_state
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
begin
    if after is null or max is null then
        perform hotrow.null_argument('after or max');
    elsif max not between 1 and 1000 then
        perform hotrow.bad_argument(format('max is %s', max), 'List 1 to 1000 sales at a time.');
    end if;
    return query
        select s.* from (
            select k.item from hotrow.sale k where k.item > list_sales.after order by k.item limit list_sales.max) page
            cross join lateral hotrow.sale(page.item) s
        order by page.item;
end
$$;
