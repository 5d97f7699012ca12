// One hot row with Bun.
package main

import (
	"context"
	"database/sql"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/driver/pgdriver"

	"frameworks/load"
)

type Item struct {
	ID   int64 `bun:",pk,autoincrement"`
	Sold int64 `bun:",notnull"`
}

func main() {
	arguments := load.Parse()
	connector := pgdriver.NewConnector(pgdriver.WithDSN(arguments.URL + "?sslmode=disable"))
	pool := sql.OpenDB(connector)
	pool.SetMaxIdleConns(arguments.Workers)
	db := bun.NewDB(pool, pgdialect.New())

	load.Main(arguments, load.Framework{
		Setup: func(ctx context.Context) error {
			if _, err := db.NewCreateTable().Model((*Item)(nil)).Exec(ctx); err != nil {
				return err
			}
			_, err := db.NewInsert().Model(&Item{ID: 1}).Exec(ctx)
			return err
		},
		OneStatement: func(ctx context.Context) error {
			_, err := db.NewUpdate().Model((*Item)(nil)).Set("sold = sold + 1").Where("id = ?", 1).Exec(ctx)
			return err
		},
		Transaction: func(ctx context.Context) error {
			return db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
				var item Item
				if err := tx.NewSelect().Model(&item).Where("id = ?", 1).For("UPDATE").Scan(ctx); err != nil {
					return err
				}
				item.Sold++
				_, err := tx.NewUpdate().Model(&item).WherePK().Exec(ctx)
				return err
			})
		},
	})
}
