// Sells a hundred phones to ten thousand buyers through Hotrow with pgx: 64 goroutines and a pool, plain SQL.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
)

const stock, buyers, workers, tries = 100, 10_000, 64, 10

type shop struct {
	pool *pgxpool.Pool
	item string
}

// connectionLost is true for class 08, a server that stops or starts, and a connection that broke without an error message.
func connectionLost(err error) bool {
	var reported *pgconn.PgError
	return !errors.As(err, &reported) || strings.HasPrefix(reported.Code, "08") || strings.HasPrefix(reported.Code, "57P0")
}

// call returns the row of a statement that can be repeated safely, and repeats it if the connection is lost.
func (s shop) call(ctx context.Context, sql string, values []any, into ...any) error {
	for attempt := 1; ; attempt++ {
		err := s.pool.QueryRow(ctx, sql, values...).Scan(into...)
		if err == nil || attempt == tries || ctx.Err() != nil || !connectionLost(err) {
			return err
		}
		time.Sleep(time.Duration(attempt) * 100 * time.Millisecond)
	}
}

// buy returns the statuses that one buyer receives.
func (s shop) buy(ctx context.Context, buyer string) ([]string, error) {
	// Generated once per purchase: a call repeated with the same ID gets the recorded answer and not a second phone.
	requestID := uuid.New()
	var status, confirmation string
	var reservation *uuid.UUID
	err := s.call(ctx, "select status, reservation_id from hotrow.reserve($1, $2, 1, $3)",
		[]any{s.item, buyer, requestID}, &status, &reservation)
	if err != nil || status != "reserved" {
		return []string{status}, err
	}
	// Here a shop would charge the buyer. A repeated confirm returns "confirmed" again, so it needs no request ID.
	err = s.call(ctx, "select * from hotrow.confirm($1)", []any{reservation}, &confirmation)
	return []string{status, confirmation}, err
}

// sell runs a limited number of buyers at a time and counts the statuses that they receive.
func (s shop) sell(ctx context.Context) (map[string]int, error) {
	var mutex sync.Mutex
	counts := map[string]int{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for number := range buyers {
		group.Go(func() error {
			statuses, err := s.buy(ctx, fmt.Sprintf("buyer %d", number))
			mutex.Lock()
			defer mutex.Unlock()
			for _, status := range statuses {
				counts[status]++
			}
			return err
		})
	}
	return counts, group.Wait()
}

func run(ctx context.Context) error {
	config, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	config.MaxConns = workers
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer pool.Close()
	s := shop{pool, cmp.Or(os.Getenv("ITEM"), "phone-go")}
	var created string
	err = s.call(ctx, "select hotrow.create_sale($1, stock => $2, per_buyer => 1, hold => '10 minutes')",
		[]any{s.item, stock}, &created)
	if err != nil {
		return err
	}
	// "exists" is also correct: the call may have been repeated after a lost connection.
	if created != "created" && created != "exists" {
		return fmt.Errorf("create_sale returned %s: set ITEM to a name that no other sale has, not %s", created, s.item)
	}
	started := time.Now()
	counts, err := s.sell(ctx)
	if err != nil {
		return err
	}
	seconds := time.Since(started).Seconds()
	var sold, remaining int64
	err = s.call(ctx, "select sold, remaining from hotrow.sale($1)", []any{s.item}, &sold, &remaining)
	if err != nil {
		return err
	}
	confirmed := counts["confirmed"]
	delete(counts, "confirmed")
	var answers []string
	for _, status := range slices.Sorted(maps.Keys(counts)) {
		answers = append(answers, fmt.Sprintf("%d %s", counts[status], status))
	}
	fmt.Printf("sold %d of %d to %d buyers in %.1f s (%s)\n", sold, stock, buyers, seconds, strings.Join(answers, ", "))
	if sold != stock || remaining != 0 || confirmed > stock {
		return fmt.Errorf("%d phones remain and %d were confirmed, which does not match the sale", remaining, confirmed)
	}
	return nil
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
