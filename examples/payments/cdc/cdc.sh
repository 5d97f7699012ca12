#!/usr/bin/env bash
# The payments' change stream: downloads, runs and watches Kafka and Debezium. README.md explains its use.
#   cdc.sh fetch             the jars, from Maven Central, once
#   cdc.sh run FOLDER        Kafka and Connect until end of input, Ctrl-C or SIGTERM; their data and logs go into FOLDER
#   cdc.sh consume [COUNT]   shows the events, each once; ends after COUNT of them
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
jars=$here/target/dependency
kafka_port=${KAFKA_PORT:-9092} controller_port=${CONTROLLER_PORT:-9093} connect_port=${CONNECT_PORT:-8083}
# Small heaps and a fast start, because everything shares a machine with the server.
jvm=(-XX:+UseSerialGC -XX:TieredStopAtLevel=1 "-Dlog4j2.configurationFile=$here/log4j2.properties" -cp "$jars/*")

fail() { echo "cdc.sh: $*" >&2; exit 1; }

fetch() {
    command -v mvn > /dev/null || fail "Maven is needed to fetch Kafka and Debezium (Debian: maven)"
    # The copy of the POM marks a complete download.
    cmp -s "$here/pom.xml" "$jars/pom.xml" && return
    rm -rf "$jars"
    (cd "$here" && mvn --quiet --batch-mode dependency:copy-dependencies -DincludeScope=runtime)
    cp "$here/pom.xml" "$jars/pom.xml"
}

fill() { # NAME: a file of settings, filled in, into the folder
    sed -e "s|@FOLDER@|$folder|; s|@KAFKA_PORT@|$kafka_port|g; s|@CONTROLLER_PORT@|$controller_port|g; s|@CONNECT_PORT@|$connect_port|" \
        -e "s|@PGHOST@|${PGHOST:-127.0.0.1}|; s|@PGPORT@|${PGPORT:-5432}|; s|@PGUSER@|${PGUSER:-postgres}|" \
        -e "s|@PGPASSWORD@|${PGPASSWORD:-}|; s|@PGDATABASE@|${PGDATABASE:-postgres}|" "$here/$1" > "$folder/$1"
}

until_true() { # PID COMMAND...: waits for it, as long as the process lives
    local process=$1; shift
    until "$@" 2> /dev/null; do
        kill -0 "$process" 2> /dev/null || fail "a program has ended; $folder has its log"
        sleep 0.1
    done
}

kafka_listens() { (exec 3<> "/dev/tcp/127.0.0.1/$kafka_port"); }
task_runs() {
    curl -sf -m 2 "http://127.0.0.1:$connect_port/connectors/payments-outbox/status" | grep -q '"tasks":\[{"id":0,"state":"RUNNING"'
}

# Restarts Connect whenever it ends. Connect then continues at its last stored position.
keep_connect_running() {
    trap 'trap - TERM; kill "$connect" 2> /dev/null; wait "$connect"; exit' TERM
    while :; do
        java -Xmx384m "${jvm[@]}" "-Dlog=$folder/connect.log" org.apache.kafka.connect.cli.ConnectStandalone \
            "$folder/connect.properties" "$folder/connector.properties" > "$folder/connect.out" 2>&1 < /dev/null &
        connect=$!
        echo "$connect" > "$folder/connect.pid"
        wait "$connect" || echo "cdc.sh: Connect has ended and is restarted" >&2
        sleep 0.2
    done
}

stop() {
    trap - EXIT INT TERM
    # Connect is stopped first, because it would wait for Kafka.
    if [ -n "${keeper:-}" ]; then kill "$keeper" 2> /dev/null || true; wait "$keeper" 2> /dev/null || true; fi
    if [ -n "${kafka:-}" ]; then kill "$kafka" 2> /dev/null || true; wait "$kafka" 2> /dev/null || true; fi
}

run() {
    command -v java > /dev/null || fail "Java 17 or newer is needed (Debian: default-jdk-headless)"
    command -v curl > /dev/null || fail "curl is needed"
    [ -e "$jars/pom.xml" ] || fail "there are no jars yet: run cdc.sh fetch"
    mkdir -p "$1"
    folder=$(cd "$1" && pwd)
    for name in kafka.properties connect.properties connector.properties; do fill "$name"; done
    trap stop EXIT
    trap 'exit 130' INT
    trap 'exit 0' TERM
    if [ ! -e "$folder/kafka/meta.properties" ]; then
        local id
        # Without '-', because Kafka takes an identifier that begins with one for an option.
        id=$(head -c16 /dev/urandom | base64 | tr '+/' '__' | tr -d '=')
        java "${jvm[@]}" "-Dlog=$folder/format.log" kafka.tools.StorageTool format -t "$id" -c "$folder/kafka.properties" > "$folder/format.out" \
            || fail "Kafka's folder cannot be made: $(cat "$folder/format.out")"
    fi
    # Both have their own sessions, so that Ctrl-C reaches only this script, which stops them in order.
    setsid java -Xmx256m "${jvm[@]}" "-Dlog=$folder/kafka.log" kafka.Kafka "$folder/kafka.properties" > "$folder/kafka.out" 2>&1 < /dev/null &
    kafka=$!
    until_true "$kafka" kafka_listens
    keep_connect_running &
    keeper=$!
    until_true "$kafka" task_runs
    echo "streaming: payments.outbox goes to Kafka at 127.0.0.1:$kafka_port"
    while read -r _; do :; done
}

case ${1:-} in
    fetch) fetch ;;
    run) [ $# = 2 ] || fail "run needs a folder"; run "$2" ;;
    consume) shift; exec java -Xmx512m "${jvm[@]}" -Dlog=/dev/null "$here/Consumer.java" "127.0.0.1:$kafka_port" "$@" ;;
    *) sed -n '2,5s/^# *//p' "$0"; exit 2 ;;
esac
