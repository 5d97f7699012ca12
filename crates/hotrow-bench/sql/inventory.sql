-- The stock that the scenarios sell from or read: one row, or the number in the setting hotrow_bench.rows. The initial stock
-- of each row depends on its id, so that an answer to the wrong client is detected.
create schema hotrow_bench;

create table hotrow_bench.inv (
    id    int    primary key,
    stock bigint not null,
    sold  bigint not null
);

-- `for update nowait` as applications use it, but in a single round trip. A client that opens a transaction, requests the
-- lock and then updates would need three more. If another client holds the lock, the answer is false, not an error.
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
