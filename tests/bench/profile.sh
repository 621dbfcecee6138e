#!/usr/bin/env bash
# Where the coordinator's time goes.
#   tests/bench/profile.sh [ROW [COUNT [FOLDER]]]   perf (Debian: linux-perf) on a loaded coordinator in row a, b or c: its threads, libraries,
#                                                   functions; the samples stay as FOLDER/perf.data (default: a, 50000, build/profile)
#   tests/bench/profile.sh road [start|pair]        callgrind on the coordinator alone (road.c, memory adapters): instructions per instance
#                                                   and the functions with what they call; needs no quiet machine
set -eu
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$ROOT/tests/bench/lib.sh"
if [ "${1:-}" = road ]; then
	cd "$ROOT"
	KIND=${2:-start} COUNT=3000 BUILD=${SLUICE_BUILD:-$ROOT/build/release}
	DIR=$(mktemp -d)
	trap 'rm -rf "$DIR"' EXIT
	# shellcheck disable=SC2046
	gcc -O2 -g -D_GNU_SOURCE -I. -I"$BUILD/generated" -o "$DIR/road" tests/bench/road.c -Wl,--start-group $(find "$BUILD" -name 'libsl_*.a') \
		-Wl,--end-group -ljq -lonig -lpcre2-8 -lpthread -lm \
		$(pkg-config --libs jansson libmicrohttpd libcurl rdkafka hiredis libuv libfyaml avro-c uuid openssl)
	valgrind --tool=callgrind --callgrind-out-file="$DIR/out" "$DIR/road" "$KIND" $COUNT >/dev/null 2>"$DIR/log" ||
		{ cat "$DIR/log" >&2; exit 1; }
	callgrind_annotate --inclusive=yes --threshold=100 "$DIR/out" 2>/dev/null | sed 's/\[.*//' >"$DIR/functions"
	grep -m1 'pipeline.c:sl_coordinator_turn' "$DIR/functions" |
		awk -v n=$COUNT '{gsub(",", "", $1); printf "the coordinator: %.0f instructions per instance\n", $1 / n}'
	echo "--- functions with what they call"
	grep -E '^ *[0-9,]+ \([ 0-9.]+%\) +(common|services)/' "$DIR/functions" | head -50
	echo "--- functions without"
	callgrind_annotate "$DIR/out" 2>/dev/null | grep -E '^ *[0-9,]+ \(' | sed 's/\[.*//' | head -25
	exit 0
fi
command -v perf >/dev/null || { echo "profile.sh: 'perf' is not installed; on Debian: apt-get install linux-perf" >&2; exit 1; }
ROW=${1:-a} COUNT=${2:-50000} OUT=${3:-$ROOT/build/profile}
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)
case $ROW in
a) NAME=start KIND=start TYPE=bench.start ;;
b) NAME=call KIND=start TYPE=bench.call ;;
c) NAME=pair KIND=pair TYPE=bench.start ;;
*) echo "profile.sh: no row $ROW" >&2; exit 2 ;;
esac
bench_begin
STUB_PORT=$(free_port)
bench_stub "$STUB_PORT"
services start 1 1 1
deploy $NAME
"$DIR/load" $KIND 5000 type=$TYPE >/dev/null || true
perf record -o "$OUT/perf.data" -F 999 -g -p "$(pid_of coordinator-1)" >/dev/null 2>&1 &
PERF=$!
sleep 0.5
"$DIR/load" $KIND "$COUNT" type=$TYPE || true
kill -INT $PERF
wait $PERF || true
report() { perf report -i "$OUT/perf.data" "$@" 2>/dev/null | grep -v '^#' | grep -v '^$' | sed 's/ *- *- *$//'; }
echo "--- threads"
report --no-children -g none --sort comm | head -5
echo "--- libraries"
report --no-children -g none --sort dso | head -10
echo "--- functions of the main thread, without what they call"
report --no-children -g none --comm sluice-coordina --sort dso,symbol | head -25
echo "--- functions of ours, with what they call (frames of libraries without frame pointers break the chain: read as a lower bound)"
report --children -g none --comm sluice-coordina --dso sluice-coordinator --sort symbol | head -40
