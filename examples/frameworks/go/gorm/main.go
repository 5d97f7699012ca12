// One hot row with GORM.
package main

import (
	"context"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"frameworks/load"
)

type Item struct {
	ID   uint
	Sold int
}

func main() {
	arguments := load.Parse()
	// GORM wraps each write in a transaction unless the configuration says otherwise.
	config := &gorm.Config{SkipDefaultTransaction: arguments.Variant == "autocommit"}
	db, err := gorm.Open(postgres.Open(arguments.URL), config)
	load.Must(err)
	pool, err := db.DB()
	load.Must(err)
	pool.SetMaxIdleConns(arguments.Workers)

	load.Main(arguments, load.Framework{
		Setup: func(ctx context.Context) error {
			if err := db.AutoMigrate(&Item{}); err != nil {
				return err
			}
			return gorm.G[Item](db).Create(ctx, &Item{ID: 1})
		},
		OneStatement: func(ctx context.Context) error {
			sold := gorm.Expr("sold + ?", 1)
			return db.WithContext(ctx).Model(&Item{}).Where("id = ?", 1).Update("sold", sold).Error
		},
		Transaction: func(ctx context.Context) error {
			return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
				var item Item
				lock := clause.Locking{Strength: "UPDATE"}
				if err := tx.Clauses(lock).First(&item, 1).Error; err != nil {
					return err
				}
				item.Sold++
				return tx.Save(&item).Error
			})
		},
	})
}
