-- The shop of `hotrow demo`: one ordinary table in its own schema. The demo creates nothing outside this schema.
create schema hotrow_demo;
-- A later run recognises the demo's schema by this comment, and can drop it.
comment on schema hotrow_demo is 'made by hotrow demo, removed when it ends';

create table hotrow_demo.item (
    id int primary key,
    name text,
    stock int not null check (stock >= 0),
    sold int not null
);

-- TRUNCATE and not UPDATE: each round starts on an empty heap page, without the row versions of the previous round.
create function hotrow_demo.restock(stock int) returns void
language sql as $$
    truncate hotrow_demo.item;
    insert into hotrow_demo.item values (1, 'phone', stock, 0);
$$;
