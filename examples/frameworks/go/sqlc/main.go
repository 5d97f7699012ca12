// One hot row with pgx and the functions that sqlc generates.
package main

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"frameworks/load"
	"frameworks/sqlc/items"
)

//go:embed schema.sql
var schema string

func main() {
	arguments := load.Parse()
	url := fmt.Sprintf("%s?pool_max_conns=%d", arguments.URL, arguments.Workers)
	pool, err := pgxpool.New(context.Background(), url)
	load.Must(err)
	defer pool.Close()
	queries := items.New(pool)

	load.Main(arguments, load.Framework{
		Setup: func(ctx context.Context) error {
			if _, err := pool.Exec(ctx, schema); err != nil {
				return err
			}
			return queries.CreateItem(ctx)
		},
		OneStatement: func(ctx context.Context) error {
			return queries.SellItem(ctx, 1)
		},
		Transaction: func(ctx context.Context) error {
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				queries := queries.WithTx(tx)
				sold, err := queries.LockItem(ctx, 1)
				if err != nil {
					return err
				}
				return queries.SetSold(ctx, items.SetSoldParams{ID: 1, Sold: sold + 1})
			})
		},
	})
}
