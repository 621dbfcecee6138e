#!/usr/bin/env bash
# Bench on real Kafka and Redis (appendfsync always), everything on this machine. Prints a table, judges nothing; README.md tells what
# each row means.
#   tests/bench/run.sh [--million] [COUNT] [ROW...]     instances of rows a and c (default 50000; b takes a fifth); rows a to f (default
#                                                       all); --million: row d goes on to 1 000 000 waiting instances
# From the environment: PARTITIONS of sluice.instances (8), ROUNDS of row a against the limit (2), and what lib.sh tells.
set -eu
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$ROOT/tests/bench/lib.sh"
COUNT=50000 ROWS="" LEVELS="1000 100000"
for arg in "$@"; do
	case $arg in
	--million) LEVELS="$LEVELS 1000000" ;;
	[a-f]) ROWS="$ROWS $arg" ;;
	*[!0-9]* | "") sed -n '4,6p' "${BASH_SOURCE[0]}" | sed 's/^# \{0,1\}//' >&2; exit 2 ;;
	*) COUNT=$arg ;;
	esac
done
bench_begin
STUB_PORT=$(free_port)
bench_stub "$STUB_PORT"
services start 1 1 1
PARTS="coordinator-1 executor-1 timer-1 redis kafka"
bad=0

# What each process used since `used_begin`, in CPU seconds per 1 000 of $1; peaks in MB.
used_begin() {
	local i
	BEFORE=""
	for i in $PARTS; do
		BEFORE="$BEFORE $(cpu "$i")"
		peak_reset "$i"
	done
}
used() {
	local i n=0 before line=""
	before=($BEFORE)
	for i in $PARTS; do
		line="$line $(awk -v a="${before[$n]}" -v b="$(cpu "$i")" -v n="$1" 'BEGIN {printf "%.3f", (b - a) * 1000 / n}') ($(peak "$i"))"
		n=$((n + 1))
	done
	echo "$line"
}

# One load: sets rate p50 p99 missing.
load() {
	read -r rate p50 p99 missing < <("$DIR/load" "$@") || true
	[ "${missing:-1}" = 0 ] || bad=1
}
line() { printf '%-40s %9s %7s %7s %8s  %s\n' "$1" "$2" "$3" "$4" "$5" "${6:-}"; }
head_of() { printf '\n%-40s %9s %7s %7s %8s  %s\n' "$1" "$2" "$3" "$4" "$5" "${6:-}"; }
throughput_head() {
	[ -z "${HEADED:-}" ] || return 0
	HEADED=1
	head_of "" "inst/s" "p50 ms" "p99 ms" missing " CPU s / 1000 inst (peak MB): coordinator executor timer redis kafka"
}
throughput() { # label kind count ...: one measured load
	used_begin
	load "${@:2}" ${RATE:+rate=$RATE}
	line "$1" "$rate" "$p50" "$p99" "$missing" "$(used "$3")"
}

row_a() {
	local i parts=$PARTS ours="" bare=""
	throughput_head
	deploy start
	load start 5000
	# the bare loop has topics of its own with the same settings, and takes the product's records and states as patterns
	(export SLUICE_TOPIC_PREFIX=limit. SLUICE_TOPICS_EVENTS=limit.events=default
		"$SLUICE_BIN/sluice" topics create >/dev/null)
	"$DIR/limit" sluice. limit. $((1024 / SLUICE_PARTITIONS_INSTANCES < 64 ? 64 : 1024 / SLUICE_PARTITIONS_INSTANCES)) >"$DIR/limit.log" &
	echo $! >"$DIR/limit.pid"
	CHILDREN="$CHILDREN $!"
	for i in $(seq 100); do grep -q ready "$DIR/limit.log" && break || sleep 0.1; done
	load start 5000 prefix=limit.
	for i in $(seq "${ROUNDS:-2}"); do
		throughput "(a) start -> inject -> end" start "$COUNT"
		ours="$ours $rate"
		PARTS="limit executor-1 timer-1 redis kafka"
		used_begin
		load start "$COUNT" prefix=limit.
		line "    the bare loop (limit)" "$rate" "$p50" "$p99" "$missing" "$(used "$COUNT")"
		PARTS=$parts
		bare="$bare $rate"
	done
	kill "$(pid_of limit)"
	awk -v ours="$ours" -v bare="$bare" 'BEGIN {n = split(ours, a); split(bare, b); for (i = 1; i <= n; i++) {x += a[i]; y += b[i]}
		printf "    product / limit: %.0f %%\n", y ? 100 * x / y : 0}'
	undeploy start
}

row_b() {
	throughput_head
	deploy call
	load start 2000 type=bench.call
	throughput "(b) start -> HTTP call -> end" start $((COUNT / 5)) type=bench.call
	undeploy call
}

row_c() {
	throughput_head
	deploy pair
	load pair 2000
	throughput "(c) start, wait, second event, end" pair "$COUNT"
	undeploy pair
}

# Instances that wait: 2 000 of them, spread over those parked last, are woken at 200/s while the others stay.
row_d() {
	local level waiting=0 woken=2000 add base first99="" n=0
	deploy pair
	load pair 2000
	base=$(redis_mb)
	head_of "(d) waiting instances" "parked/s" "p50 ms" "p99 ms" missing " p99 against the first; MB: coordinator, Redis; KB of Redis each"
	for level in $LEVELS; do
		add=$((level + woken - waiting))
		n=$((n + 1))
		load park $add run="park-$$-$n"
		local parked=$rate
		load wake $woken run="park-$$-$n" of=$add rate=200
		waiting=$level
		first99=${first99:-$p99}
		line "    $level" "$parked" "$p50" "$p99" "$missing" \
			" $(div "$p99" "$first99")  $(rss coordinator-1) $(redis_mb) $(awk -v a="$(redis_mb)" -v b="$base" -v n=$level 'BEGIN {printf "%.1f", (a - b) * 1024 / n}')"
	done
	undeploy pair
}

# The same number of items in many loops and in one long loop.
row_e() {
	local name one few
	head_of "(e) foreach: CPU us per item" "10 x 1000" "10000" ratio missing " coordinator and Redis; ms per item; peak MB coordinator"
	for name in seq-expr par-expr seq-rest par-rest; do
		deploy "each-$name"
		load chain 1 type="bench.each-$name" items=100
		each_one "$name" 10 1000
		few=$used_us miss=$missing
		each_one "$name" 1 10000
		one=$used_us
		line "    ${name/seq-/sequential, }" "$few" "$one" "$(div "$one" "$few")" $((miss + missing)) \
			" $(div "$p50" 10000 %.2f) $(peak coordinator-1)"
		undeploy "each-$name"
	done
}
each_one() { # name instances items: sets used_us
	local before
	peak_reset coordinator-1
	before=$(awk -v a="$(cpu coordinator-1)" -v b="$(cpu redis)" 'BEGIN {print a + b}')
	load chain "$2" type="bench.each-$1" items="$3"
	used_us=$(awk -v a="$(cpu coordinator-1)" -v b="$(cpu redis)" -v c="$before" -v n=$(($2 * $3)) 'BEGIN {printf "%.0f", (a + b - c) * 1e6 / n}')
}

# Each executor may have eight calls of 20 ms at a time, so one does at most 400/s and is what holds up the rest.
row_f() {
	local n first="" port
	port=$(free_port)
	bench_stub "$port" 20
	STUB_PORT=$port deploy call
	head_of "(f) executors, 20 ms service" "inst/s" "p50 ms" "p99 ms" missing " against one; most possible"
	for n in 1 2 4; do
		services stop
		(export SLUICE_EXECUTOR_IN_FLIGHT_MAX=8 && services start $n 1 1)
		load start $((n * 200)) type=bench.call
		load start $((n * 3000)) type=bench.call
		first=${first:-$rate}
		line "    $n" "$rate" "$p50" "$p99" "$missing" " $(div "$rate" "$first")  $((n * 400))"
	done
	undeploy call
	services stop
	services start 1 1 1
}

for row in ${ROWS:-a b c d e f}; do "row_$row"; done
exit $bad
