#!/usr/bin/env bash
# Where the coordinator's time goes in row a, b or c: perf (Debian: linux-perf) on a loaded coordinator. Prints its threads, libraries, and the
# largest costs by what they are for; the raw samples stay as FOLDER/perf.data.
#   tests/bench/profile.sh [ROW [COUNT [FOLDER]]]     default: a, 50000, build/profile
set -eu
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$ROOT/tests/bench/lib.sh"
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
