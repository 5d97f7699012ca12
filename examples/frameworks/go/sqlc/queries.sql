-- name: CreateItem :exec
insert into items (sold) values (0);

-- name: SellItem :exec
update items set sold = sold + 1 where id = $1;

-- name: LockItem :one
select sold from items where id = $1 for update;

-- name: SetSold :exec
update items set sold = $2 where id = $1;
