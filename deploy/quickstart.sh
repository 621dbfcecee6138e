#!/usr/bin/env bash
# The whole of Sluice on this machine: installs what is missing, builds, starts Kafka, Redis and the services, deploys the
# order example, publishes its events with a stock client, and shows the instance start, wait, wake and finish.
#   deploy/quickstart.sh         then Ctrl-C ends everything
#   deploy/quickstart.sh --once  the same, ends by itself
#   deploy/quickstart.sh stop    cleans up after a run that was killed
# SLUICE_KAFKA_BROKERS=host:port uses that Kafka instead of starting one.
set -eu
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${SLUICE_CACHE:-$HOME/.cache/sluice}
RUN=$CACHE/quickstart
BIN=$ROOT/build/release/bin
LOCAL=$ROOT/deploy/local
cd "$ROOT"

say() { printf '\n== %s\n' "$*"; }

stop_all() {
	"$LOCAL/services.sh" stop "$RUN" || true
	[ -s "$RUN/example.pid" ] && kill "$(cat "$RUN/example.pid")" 2>/dev/null || true
	rm -f "$RUN/example.pid"
	[ -e "$RUN/own-kafka" ] && "$LOCAL/kafka.sh" stop "$RUN" || true
	"$LOCAL/redis.sh" stop "$RUN" || true
}

if [ "${1:-}" = stop ]; then
	stop_all
	exit 0
fi

began=$(date +%s)
say "packages and build"
deploy/packages.sh build run
[ -f build/release/build.ninja ] || cmake --preset release >/dev/null
cmake --build --preset release | tail -1

say "Kafka and Redis"
stop_all
rm -rf "$RUN"
mkdir -p "$RUN"
trap 'code=$?; trap - EXIT INT TERM; stop_all; exit $code' EXIT INT TERM
if [ -n "${SLUICE_KAFKA_BROKERS:-}" ]; then
	echo "Kafka: $SLUICE_KAFKA_BROKERS (given)"
elif "$LOCAL/kafka.sh" start "$RUN" >/dev/null; then
	: >"$RUN/own-kafka"
	. "$RUN/kafka.env"
	echo "Kafka: $SLUICE_KAFKA_BROKERS"
else
	echo "No real Kafka can be had here (see above). Start one elsewhere and set SLUICE_KAFKA_BROKERS=host:port." >&2
	exit 3
fi
"$LOCAL/redis.sh" start "$RUN" >/dev/null
. "$RUN/redis.env"
echo "Redis: $SLUICE_REDIS_URL"
export SLUICE_KAFKA_BROKERS SLUICE_REDIS_URL
export SLUICE_EXECUTOR_EGRESS_LOOPBACK=true # the example's service is on this machine

say "topics and services"
"$BIN/sluice" topics create
python3 examples/order/service.py 8089 >"$RUN/example.log" 2>&1 &
echo $! >"$RUN/example.pid"
"$LOCAL/services.sh" start "$RUN" 2
"$LOCAL/services.sh" status "$RUN"

say "sluice deploy examples/order/order.sw.yaml"
"$BIN/sluice" deploy examples/order/order.sw.yaml

order=$(date +%s)
publish() { # attribute=value... data
	local data=${*: -1} headers=() a
	for a in "${@:1:$#-1}"; do headers+=(-H "ce_$a"); done
	printf '%s' "$data" | kcat -P -b "$SLUICE_KAFKA_BROKERS" -t sluice.events -H ce_specversion=1.0 -H content-type=application/json "${headers[@]}"
}

say "kcat publishes order.placed, orderid $order"
publish "id=o-$order" type=order.placed source=shop "orderid=$order" '{"article":"lamp","count":3}'
instance=""
for _ in $(seq 1 100); do
	instance=$("$BIN/sluice" list --workflow order --status waiting --output json | jq -r '.[0].id // empty')
	[ -n "$instance" ] && break
	sleep 0.1
done
[ -n "$instance" ] || { echo "the instance did not come to wait; logs are in $RUN" >&2; exit 1; }
"$BIN/sluice" show "$instance"

say "kcat publishes payment.settled"
publish "id=p-$order" type=payment.settled source=bank "orderid=$order" '{"status":"settled","amount":60}'
for _ in $(seq 1 100); do
	[ "$("$BIN/sluice" show "$instance" --output json | jq -r .status)" = completed ] && break
	sleep 0.1
done
"$BIN/sluice" show "$instance"
status=$("$BIN/sluice" show "$instance" --output json | jq -r .status)
echo
echo "took $(($(date +%s) - began)) s"
if [ "$status" != completed ]; then
	echo "the instance is $status, not completed; logs are in $RUN" >&2
	exit 1
fi
[ "${1:-}" != --once ] || exit 0
cat <<EOT

All is running. In another terminal:
  export SLUICE_KAFKA_BROKERS=$SLUICE_KAFKA_BROKERS SLUICE_REDIS_URL=$SLUICE_REDIS_URL PATH=$BIN:\$PATH
  sluice list
Ctrl-C ends it, or: deploy/quickstart.sh stop
EOT
while sleep 3600; do :; done
