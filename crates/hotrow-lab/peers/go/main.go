// Processes orders with River. The jobs do no work. The benchmark decides the numbers of orders and workers.
//
//	river versions
//	DATABASE_URL=... river enqueue river ORDERS
//	DATABASE_URL=... river work river ORDERS WORKERS RUN
//
// `work` prints {"orders": ..., "seconds": ...}: the time from the client's start until the last order was recorded as
// completed. The processed orders are written to hotrow_bench.worked.
package main

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const schema = "river"

// An order, as it is queued.
type order struct {
	ID      int64     `json:"id"`
	OrderID uuid.UUID `json:"order_id"`
	Amount  int       `json:"amount"`
}

func (order) Kind() string { return "order" }

type worker struct {
	river.WorkerDefaults[order]
	worked chan<- order
}

func (w *worker) Work(_ context.Context, job *river.Job[order]) error {
	w.worked <- job.Args
	return nil
}

func main() {
	ctx := context.Background()
	command := os.Args[1]
	if command == "versions" {
		fmt.Println(versions())
		return
	}
	orders, err := strconv.Atoi(os.Args[3])
	check(err)
	config, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	check(err)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	check(err)
	defer pool.Close()
	if command == "enqueue" {
		enqueue(ctx, pool, orders)
		return
	}
	workers, err := strconv.Atoi(os.Args[4])
	check(err)
	seconds := work(ctx, pool, orders, workers)
	fmt.Printf("{\"orders\": %d, \"seconds\": %f}\n", orders, seconds)
}

func enqueue(ctx context.Context, pool *pgxpool.Pool, orders int) {
	exec := func(sql string, values ...any) {
		_, err := pool.Exec(ctx, sql, values...)
		check(err)
	}
	// The benchmark drops the schema after the run.
	exec("insert into hotrow_bench.elsewhere values ($1) on conflict do nothing", schema)
	exec("create schema if not exists " + schema)
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Schema: schema})
	check(err)
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	check(err)

	// Numbers that no earlier part of the run has used.
	var before int
	check(pool.QueryRow(ctx, "select coalesce(sum(orders), 0)::int from hotrow_bench.begun").Scan(&before))
	exec("insert into hotrow_bench.begun values ($1)", orders)
	client, err := river.NewClient(driver, &river.Config{Schema: schema})
	check(err)
	const piece = 1000
	for from := 0; from < orders; from += piece {
		var jobs []river.InsertManyParams
		for n := from; n < min(from+piece, orders); n++ {
			jobs = append(jobs, river.InsertManyParams{Args: order{int64(before + n + 1), uuid.New(), 1}})
		}
		_, err := client.InsertManyFast(ctx, jobs)
		check(err)
	}
	// The benchmark does the same with the tables of its other techniques.
	exec("vacuum (analyze) " + schema + ".river_job")
	exec("checkpoint")
}

func work(ctx context.Context, pool *pgxpool.Pool, orders, workers int) float64 {
	worked := make(chan order, orders)
	registered := river.NewWorkers()
	river.AddWorker(registered, &worker{worked: worked})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		// The shortest interval that River accepts.
		FetchCooldown:     river.FetchCooldownMin,
		FetchPollInterval: river.FetchPollIntervalMin,
		Logger:            slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
		Schema:            schema,
		Workers:           registered,
	})
	check(err)
	// The channel has room for all events, because River drops events that do not fit.
	completed, unsubscribe := client.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: orders, Kinds: []river.EventKind{river.EventKindJobCompleted},
	})
	defer unsubscribe()
	began := time.Now()
	check(client.Start(ctx))
	for range orders {
		<-completed
	}
	seconds := time.Since(began).Seconds()
	check(client.Stop(ctx))
	keep(ctx, pool, worked, orders)
	return seconds
}

// Writes the processed orders to the table that the benchmark counts.
func keep(ctx context.Context, pool *pgxpool.Pool, worked chan order, orders int) {
	close(worked)
	seen := make(map[int64]uuid.UUID, orders)
	ids, orderIDs := make([]int64, 0, orders), make([]uuid.UUID, 0, orders)
	for done := range worked {
		if _, twice := seen[done.ID]; twice {
			log.Fatalf("order %d was worked off twice", done.ID)
		}
		seen[done.ID] = done.OrderID
		ids, orderIDs = append(ids, done.ID), append(orderIDs, done.OrderID)
	}
	_, err := pool.Exec(ctx, `insert into hotrow_bench.worked (id, order_id)
		select * from unnest($1::bigint[], $2::uuid[])`, ids, orderIDs)
	check(err)
}

func versions() string {
	build, _ := debug.ReadBuildInfo()
	text := runtime.Version()
	for _, module := range build.Deps {
		switch module.Path {
		case "github.com/riverqueue/river":
			text = "River " + module.Version + ", " + text
		case "github.com/jackc/pgx/v5":
			text = "pgx " + module.Version + ", " + text
		}
	}
	return text
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
