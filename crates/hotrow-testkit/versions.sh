#!/usr/bin/env bash
# Runs the tests whose results can depend on the version of PostgreSQL on several servers, and prints a table of the results. The
# arguments are folders of server programs. Without any, one release of each major version is downloaded from Maven Central.
#   VERSIONS="14 18"      the major versions to download
#   TARGETS="drivers"     the tests to run, by default all below
#   LONG=1                the long tests too, which count as not run otherwise
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

cargo=${CARGO:-cargo}
targets=${TARGETS:-models pack situations drivers session_state merging lanes authentication edges listen replicas console http faults differential}
logs=target/versions
export HOTROW_TEST_SEED=${HOTROW_TEST_SEED:-1} PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-1}
export HOTROW_DIFFERENTIAL_SECONDS=${HOTROW_DIFFERENTIAL_SECONDS:-60}
unset HOTROW_CITUS_BIN # its server is of another version
mkdir -p "$logs"
failures=$logs/failures
: > "$failures"

bins=("$@")
if [ $# = 0 ]; then
    for version in ${VERSIONS:-14 15 16 17 18}; do
        if bin=$($cargo run --quiet --package hotrow-postgres --example fetch -- "$version"); then
            bins+=("$bin")
        else
            echo "$version: there is no server" >> "$failures"
        fi
    done
fi

# Runs one target on one server: cargo's result, with the output in the log. The whole workspace is named each time, so that no crate
# is compiled twice. The target `models` compares the models of PostgreSQL in several crates with the server; `pack` is the name of
# the tests of the hotrow schema in two crates.
run() {
    local chosen=(--test "$2") filter=()
    [ "$2" != models ] || chosen=(--lib --test simulator) filter=(same_as_postgres)
    HOTROW_PG_BIN=$1 $cargo test --workspace --no-fail-fast "${chosen[@]}" -- --show-output ${LONG:+--include-ignored} \
        ${filter[@]+"${filter[@]}"} > "$3" 2>&1
}

# The numbers of tests that passed, failed and were not run, from a log. A test says that it lacks something by a line `not run: ...`.
count() {
    awk '/^test result:/ { for (i = 5; i <= NF; i++) n[$i] += $(i - 1) }
        /^not run: / { lacking++ }
        END { print n["passed;"] - lacking, n["failed;"] + 0, n["ignored;"] + lacking }' "$1"
}

echo "building the tests" >&2
$cargo test --workspace --no-run --quiet || exit 1
table() { printf '%-10s %-16s %7s %7s %8s %8s\n' "$@"; }
table version test passed failed "not run" seconds
for bin in ${bins[@]+"${bins[@]}"}; do
    version=$("$bin/postgres" --version | cut -d ' ' -f 3)
    for target in $targets; do
        log=$logs/$version-$target.log
        [ ! -t 2 ] || printf '%s %s ...\r' "$version" "$target" >&2
        begin=$SECONDS
        run "$bin" "$target" "$log"
        status=$?
        read -r passed failed lacking < <(count "$log")
        [ $status = 0 ] || [ "$failed" -gt 0 ] || failed="?" # nothing was run to the end
        table "$version" "$target" "$passed" "$failed" "$lacking" $((SECONDS - begin))
        [ $status = 0 ] || echo "$version $target: $(sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' "$log" | tr '\n' ' ')see $log" >> "$failures"
        sed -n "s/^not run: /$version $target: not run: /p" "$log" | sort -u
    done
done
[ ! -s "$failures" ] || { echo "Failed:" && cat "$failures" && exit 1; } >&2
