# What a newcomer and CI call. `make help` lists it.
.DEFAULT_GOAL := help
CARGO ?= cargo
FUZZ_SECONDS ?= 60
# What the benchmark is told besides the scenario: make bench ARGS="--seconds 2 --clients 64"
ARGS ?=
# How many tests of a binary run at once: most of them wait for servers half of the time
TEST_THREADS ?= $(shell expr 2 '*' $$(getconf _NPROCESSORS_ONLN))
# Where `make test-versions` finds its servers: a folder for each
PG_BINS ?=

.PHONY: help demo payments-demo test test-versions faults differential conformance examples openapi check audit bench peers fuzz

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## sell phones to a crowd, directly and through the gateway, on a private server
	$(CARGO) run --release --package hotrow -- demo

payments-demo: ## a payment service on a match day, directly and through the gateway (CDC=1: with Kafka and Debezium, needs Java and Maven)
	$(if $(CDC),examples/payments/cdc/cdc.sh fetch)
	$(CARGO) build --release --package payments
	$(CARGO) run --release --package hotrow -- bench match-day --rounds 1 --seconds 12 \
		$(if $(CDC),--change-stream examples/payments/cdc/cdc.sh) $(ARGS)

test: ## all tests but those of examples, conformance and openapi below; they start the servers they need
	RUST_TEST_THREADS=$(TEST_THREADS) $(CARGO) test --workspace

test-versions: ## the schema pack's tests on each server: make test-versions PG_BINS="/usr/lib/postgresql/14/bin ..."
	$(if $(PG_BINS),,$(error PG_BINS is empty: name the servers' folders, as `make help` shows))
	set -e; for bin in $(PG_BINS); do echo "== $$bin"; HOTROW_PG_BIN=$$bin $(CARGO) test --package hotrow-sql; done

faults: ## servers, backends and gateways killed under load for five minutes, and every answer checked
	HOTROW_FAULT_SECONDS=300 $(CARGO) test --package hotrow --test faults -- --nocapture marathon

differential: ## random programs, directly and through the gateway, compared byte by byte (five minutes; docs/internals/differential.md)
	HOTROW_DIFFERENTIAL_SECONDS=$${HOTROW_DIFFERENTIAL_SECONDS:-300} $(CARGO) test --package hotrow --test differential -- --nocapture programs

conformance: ## other people's test suites, direct and through the gateway (QUICK=1: a few minutes; docs/conformance.md)
	$(CARGO) test --package hotrow --test conformance -- --nocapture

examples: ## the example programs of each driver, fetched and run (needs Python, Java, Node.js, Go and curl)
	examples/prepare.sh
	$(CARGO) test --package hotrow --test examples

openapi: target/schemathesis/bin/schemathesis ## the HTTP API and the payment service's under schemathesis (needs Python)
	$(CARGO) test --package hotrow --test schemathesis
	$(CARGO) test --package payments --test service -- --ignored schemathesis

target/schemathesis/bin/schemathesis: crates/hotrow/tests/schemathesis/requirements.txt
	python3 -m venv target/schemathesis
	target/schemathesis/bin/pip install --quiet --requirement $<

check: ## formatting, lints and dependencies, as CI does
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) clippy --package hotrow --test conformance --test examples --test schemathesis -- -D warnings
	CUSTOM_LIBFUZZER_PATH=not/linked/libfuzzer.a $(CARGO) clippy --manifest-path fuzz/Cargo.toml --target-dir target -- -D warnings
	$(CARGO) deny --log-level error check bans licenses sources

audit: ## known vulnerabilities of the dependencies (fetches the advisory database)
	$(CARGO) deny check advisories

bench: ## Hotrow against today's techniques, side by side (half an hour; results in bench-results/)
	$(CARGO) run --release --package hotrow -- bench all $(ARGS)

peers: ## River, graphile-worker and pg-boss for `hotrow bench queue --peers crates/hotrow-bench/peers` (needs npm and Go)
	crates/hotrow-bench/peers/install.sh

fuzz: ## frames and statements, a minute each (needs cargo-fuzz and a nightly compiler)
	cd fuzz && $(CARGO) +nightly fuzz run frames -- -max_total_time=$(FUZZ_SECONDS)
	cd fuzz && $(CARGO) +nightly fuzz run classify -- -max_total_time=$(FUZZ_SECONDS)
