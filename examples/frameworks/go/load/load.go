// Package load repeats one update in goroutines, and prints how many updates were acknowledged.
package load

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const warmUp = 2 * time.Second

// Framework is one hot row with a framework.
type Framework struct {
	Setup, OneStatement, Transaction func(context.Context) error
}

// Arguments are those of the command line: setup|autocommit|wrapped|transaction URL WORKERS SECONDS.
type Arguments struct {
	Variant, URL string
	Workers      int
	Seconds      float64
}

// Parse reads the command line.
func Parse() Arguments {
	arguments := Arguments{Variant: os.Args[1], URL: os.Args[2], Workers: 1}
	if len(os.Args) > 4 {
		arguments.Workers, _ = strconv.Atoi(os.Args[3])
		arguments.Seconds, _ = strconv.ParseFloat(os.Args[4], 64)
	}
	return arguments
}

// Main runs the variant that the arguments name.
func Main(arguments Arguments, framework Framework) {
	if arguments.Variant == "setup" {
		Must(framework.Setup(context.Background()))
		return
	}
	update := framework.OneStatement
	if arguments.Variant == "transaction" {
		update = framework.Transaction
	}
	var done atomic.Int64
	var stopped atomic.Bool
	workers, ctx := errgroup.WithContext(context.Background())
	for range arguments.Workers {
		workers.Go(func() error {
			for !stopped.Load() {
				if err := update(ctx); err != nil {
					return err
				}
				done.Add(1)
			}
			return nil
		})
	}
	time.Sleep(warmUp)
	before, started := done.Load(), time.Now()
	time.Sleep(time.Duration(arguments.Seconds * float64(time.Second)))
	perSecond := float64(done.Load()-before) / time.Since(started).Seconds()
	stopped.Store(true)
	Must(workers.Wait())
	fmt.Printf("{\"updates\": %d, \"per_second\": %f}\n", done.Load(), perSecond)
}

// Must ends the program if there is an error.
func Must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
