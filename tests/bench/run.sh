#!/usr/bin/env bash
# Bench on real Kafka and Redis (appendfsync always), everything on this machine: completed and acknowledged instances/s, p50 and
# p99, CPU seconds per 1 000 instances and resident memory of each service. Prints a table, judges nothing.
#   tests/bench/run.sh [COUNT]     instances per row (default 50000; the HTTP row takes a fifth)
set -eu
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$ROOT"
COUNT=${1:-50000}
BUILD=${SLUICE_BUILD:-$ROOT/build/release}
export SLUICE_BIN=$BUILD/bin
DIR=$(mktemp -d)
cleanup() {
	code=$?
	trap - EXIT INT TERM
	deploy/local/services.sh stop "$DIR" || true
	[ -z "${STUB:-}" ] || kill "$STUB" 2>/dev/null || true
	deploy/local/kafka.sh stop "$DIR" || true
	deploy/local/redis.sh stop "$DIR" || true
	[ -n "${KEEP:-}" ] && echo "kept: $DIR" || rm -rf "$DIR"
	exit $code
}
trap cleanup EXIT INT TERM

if [ -z "${SLUICE_BUILD:-}" ]; then
	deploy/packages.sh build run
	[ -f build/release/build.ninja ] || cmake --preset release >/dev/null
	cmake --build --preset release | tail -1
fi
gcc -O2 -D_GNU_SOURCE -o "$DIR/load" tests/bench/load.c -lrdkafka
gcc -O2 -D_GNU_SOURCE -o "$DIR/stub" tests/bench/stub.c -lmicrohttpd
deploy/local/kafka.sh start "$DIR" >/dev/null
deploy/local/redis.sh start "$DIR" >/dev/null
. "$DIR/kafka.env"
. "$DIR/redis.env"
export SLUICE_KAFKA_BROKERS SLUICE_REDIS_URL SLUICE_EXECUTOR_EGRESS_LOOPBACK=true
export SLUICE_PARTITIONS_INSTANCES=${PARTITIONS:-8} SLUICE_PARTITIONS_EVENTS=4 SLUICE_PARTITIONS_LIFECYCLE=4 SLUICE_PARTITIONS_ACTIONS=4
"$SLUICE_BIN/sluice" topics create >/dev/null
"$DIR/stub" 8097 &
STUB=$!
deploy/local/services.sh start "$DIR" 1 1 1

cpu() { # seconds of user and system time
	awk -v hz="$(getconf CLK_TCK)" '{sub(/.*\) /, ""); print ($12 + $13) / hz}' "/proc/$1/stat"
}
rss() { awk '/VmRSS/ {print int($2 / 1024)}' "/proc/$1/status"; }
redis_pid() { cat "$DIR/redis.pid"; }
kafka_pid() { cat "$DIR/kafka.pid"; }
peak() { awk '/VmHWM/ {print int($2 / 1024)}' "/proc/$1/status"; }

printf '%-34s %9s %7s %7s %8s   %s\n' "" "inst/s" "p50 ms" "p99 ms" "missing" "CPU s / 1000 inst (peak MB): coordinator executor timer redis kafka"
row() { # label file kind count
	local names="coordinator-1 executor-1 timer-1" before=() after=() i pids=() line=""
	"$SLUICE_BIN/sluice" deploy "$2" >/dev/null
	"$DIR/load" "$SLUICE_KAFKA_BROKERS" sluice.events sluice.lifecycle "$3" 2000 >/dev/null || true # warm
	for i in $names; do pids+=("$(cat "$DIR/$i.pid")"); done
	pids+=("$(redis_pid)" "$(kafka_pid)")
	for i in "${pids[@]}"; do before+=("$(cpu "$i")"); done
	read -r rate p50 p99 missing < <("$DIR/load" "$SLUICE_KAFKA_BROKERS" sluice.events sluice.lifecycle "$3" "$4" "${RATE:-0}") || true
	for i in "${!pids[@]}"; do
		line="$line $(awk -v a="${before[$i]}" -v b="$(cpu "${pids[$i]}")" -v n="$4" 'BEGIN {printf "%.3f", (b - a) * 1000 / n}') ($(peak "${pids[$i]}"))"
	done
	printf '%-34s %9s %7s %7s %8s  %s\n' "$1" "$rate" "$p50" "$p99" "$missing" "$line"
	"$SLUICE_BIN/sluice" undeploy "$5" >/dev/null
}
row "(a) start -> inject -> end" tests/bench/start.sw.yaml start "$COUNT" bench-start
row "(b) start -> HTTP call -> end" tests/bench/call.sw.yaml start $((COUNT / 5)) bench-call
row "(c) start, wait, second event, end" tests/bench/pair.sw.yaml pair "$COUNT" bench-pair
