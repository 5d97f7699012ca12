-- The stock that every scenario of this folder sells from or reads: one row, or as many as the setting hotrow_bench.rows says.
-- Each row starts with a stock that only its id can have, so that an answer handed to the wrong client is noticed.
create schema hotrow_bench;

create table hotrow_bench.inv (
    id    int    primary key,
    stock bigint not null,
    sold  bigint not null
);

-- `for update nowait` as people use it, but in a single round trip: a client that opens a transaction, asks for the lock
-- and then updates would pay three more. A lock that is taken is an answer (false), not an error.
create function hotrow_bench.sell_nowait(item int) returns boolean
language plpgsql as $$
begin
    perform from hotrow_bench.inv where id = item for update nowait;
    update hotrow_bench.inv set stock = stock - 1, sold = sold + 1 where id = item and stock >= 1;
    return found;
exception
    when lock_not_available then
        return false;
end
$$;
