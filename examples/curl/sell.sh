#!/usr/bin/env bash
# Sells a hundred phones to ten thousand buyers through Hotrow's HTTP API with curl: 64 requests at a time.
set -euo pipefail

url=${HOTROW_URL:?set it to the address of hotrow serve --http, for example http://127.0.0.1:8080}
item=${ITEM:-phone-curl} # used in paths without encoding: letters, digits, - and _
stock=100 buyers=10000 workers=64

folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT

# Makes random UUIDs, one per line, in one process. uuidgen would need ten thousand.
uuids() {
    od -An -v -tx1 -N $((16 * $1)) /dev/urandom | tr -d ' ' |
        sed -E 's/(.{8})(.{4}).(.{3}).(.{3})(.{12})/\1-\2-4\3-8\4-\5/'
}

# Sends a POST for each input line, which has a path and optionally a body and an Idempotency-Key. $1.json has one answer
# per line. A single curl process keeps its connections. After a lost connection, a 429 or a 503 it repeats the request
# with the same key, so the buyer gets the recorded answer and not a second phone.
post() {
    mkdir "$folder/$1"
    awk -v url="$url" -v to="$folder/$1/" '
        {
            printf "%surl = %s%s\noutput = %s%d\nrequest = POST\n", (NR > 1 ? "next\n" : ""), url, $1, to, NR
            print "silent\nshow-error\nretry = 10\nretry-all-errors\nretry-max-time = 60"
        }
        NF > 1 { printf "json = %s\nheader = Idempotency-Key:%s\n", $2, $3 }
    ' > "$folder/$1.config"
    if [ -s "$folder/$1.config" ]; then
        curl --no-progress-meter --parallel --parallel-max "$workers" --config "$folder/$1.config"
    fi
    find "$folder/$1" -type f -exec cat {} + | tr '}' '\n' > "$folder/$1.json"
}

# Reads a field of the answers.
field() {
    sed -nE "s/.*\"$1\":\"?([^,\"]+).*/\1/p"
}

curl --silent --show-error --fail-with-body --request PUT "$url/v1/sales/$item" \
    --json "{\"stock\": $stock, \"per_buyer\": 1, \"hold\": 600}" > "$folder/created"
created=$(field status < "$folder/created")
# "exists" is also correct: an earlier run may have created the sale.
if [ "$created" != created ] && [ "$created" != exists ]; then
    echo "creating the sale returned $created: set ITEM to a name that no other sale has, not $item" >&2
    exit 1
fi

started=$EPOCHREALTIME
uuids "$buyers" |
    awk -v item="$item" '{ printf "/v1/sales/%s/reservations {\"buyer\":\"buyer-%d\"} %s\n", item, NR, $1 }' |
    post reservations
# Here a shop would charge the buyer. A repeated confirm returns "confirmed" again, so it needs no key.
field reservation_id < "$folder/reservations.json" |
    awk '$1 != "null" { printf "/v1/reservations/%s/confirm\n", $1 }' | post confirmations
seconds=$(awk -v from="$started" -v to="$EPOCHREALTIME" 'BEGIN { printf "%.1f", to - from }')

curl --silent --show-error --fail-with-body "$url/v1/sales/$item" > "$folder/sale.json"
sold=$(field sold < "$folder/sale.json") remaining=$(field remaining < "$folder/sale.json")
answered=$(grep -c '"status":"' "$folder/reservations.json" || true) # a problem's status is a number
confirmed=$(field status < "$folder/confirmations.json" | grep -cx confirmed || true)
counts=$(field status < "$folder/reservations.json" | sort | uniq -c | awk '{ printf "%s%s %s", (NR > 1 ? ", " : ""), $1, $2 }')
echo "sold $sold of $stock to $buyers buyers in $seconds s ($counts)"
[ "$sold" -eq "$stock" ] && [ "$remaining" -eq 0 ] && [ "$confirmed" -le "$stock" ] && [ "$answered" -eq "$buyers" ]
