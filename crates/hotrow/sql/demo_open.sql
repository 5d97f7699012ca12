-- The shop of `hotrow demo`: one ordinary table in a schema of its own. Never anything outside that schema.
create schema hotrow_demo;
-- By this comment a later run knows that the schema is the demo's own and may be removed.
comment on schema hotrow_demo is 'made by hotrow demo, removed when it ends';

create table hotrow_demo.item (
    id int primary key,
    name text,
    stock int not null check (stock >= 0),
    sold int not null
);

-- Truncated, not updated: each round starts on an empty heap page, without the versions that the last one left.
create function hotrow_demo.restock(stock int) returns void
language sql as $$
    truncate hotrow_demo.item;
    insert into hotrow_demo.item values (1, 'phone', stock, 0);
$$;
