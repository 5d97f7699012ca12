-- A schema with a row for each tenant. The number of tenants is the setting hotrow_bench.rows. The view shows all rows.
create schema hotrow_bench;

do $$
declare
    tenants int := current_setting('hotrow_bench.rows');
begin
    for tenant in 1..tenants loop
        execute format('create schema hotrow_bench_%s', tenant);
        execute format(
            'create table hotrow_bench_%1$s.inv (id int primary key, stock bigint not null, sold bigint not null);
             insert into hotrow_bench_%1$s.inv values (1, 1000000001, 0)', tenant);
    end loop;
    execute (
        select 'create view hotrow_bench.inv as '
            || string_agg(format('select id, stock, sold from hotrow_bench_%s.inv', tenant), ' union all ')
        from generate_series(1, tenants) as tenant);
end
$$;
