#!/usr/bin/env bash
# Two builds against each other in one run: on the same Kafka and Redis their services run in turn (old new new old ...), so whatever else
# the machine does hits both. Prints each round and the ratios new / old (medians): instances/s, CPU of the coordinator
# and of Kafka per instance, peak memory of the coordinator.
#   tests/bench/compare.sh OLD_BUILD NEW_BUILD [ROW [COUNT [ROUNDS]]]     ROW a, b or c (default a), 30000 instances, 4 rounds of each
# A build of another commit: git worktree add /tmp/old COMMIT; cmake -S /tmp/old -B /tmp/old-build -G Ninja -DCMAKE_BUILD_TYPE=Release \
#   -DCMAKE_C_FLAGS_RELEASE=-O2 -DSLUICE_TESTS=OFF; ninja -C /tmp/old-build
set -eu
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$ROOT/tests/bench/lib.sh"
[ $# -ge 2 ] && [ -x "$1/bin/sluice-coordinator" ] && [ -x "$2/bin/sluice-coordinator" ] ||
	{ sed -n '5,7p' "${BASH_SOURCE[0]}" | sed 's/^# \{0,1\}//' >&2; exit 2; }
OLD=$(cd "$1" && pwd) NEW=$(cd "$2" && pwd) ROW=${3:-a} COUNT=${4:-30000} ROUNDS=${5:-4}
SLUICE_BUILD=$OLD
bench_begin
case $ROW in
a) NAME=start KIND=start TYPE=bench.start ;;
b) NAME=call KIND=start TYPE=bench.call ;;
c) NAME=pair KIND=pair TYPE=bench.start ;;
*) echo "compare.sh: no row $ROW" >&2; exit 2 ;;
esac
STUB_PORT=$(free_port)
bench_stub "$STUB_PORT"
OUT=$DIR/rounds
: >"$OUT"
printf '%-6s %9s %7s %7s %8s %14s %9s %8s\n' build "inst/s" "p50 ms" "p99 ms" missing "CPU us / inst" "of Kafka" "peak MB"
round() { # old|new folder
	local before after kafka
	export SLUICE_BIN=$2/bin
	services start 1 1 1
	[ -n "${DEPLOYED:-}" ] || deploy $NAME
	DEPLOYED=1
	"$DIR/load" $KIND 3000 type=$TYPE >/dev/null || true
	before=$(cpu coordinator-1) kafka=$(cpu kafka)
	read -r rate p50 p99 missing < <("$DIR/load" $KIND "$COUNT" type=$TYPE) || true
	after=$(cpu coordinator-1)
	after=$(awk -v a="$after" -v b="$before" -v n="$COUNT" 'BEGIN {printf "%.1f", (a - b) * 1e6 / n}')
	kafka=$(awk -v a="$(cpu kafka)" -v b="$kafka" -v n="$COUNT" 'BEGIN {printf "%.1f", (a - b) * 1e6 / n}')
	printf '%-6s %9s %7s %7s %8s %14s %9s %8s\n' "$1" "$rate" "$p50" "$p99" "$missing" "$after" "$kafka" "$(peak coordinator-1)" | tee -a "$OUT"
	services stop
}
round warm "$OLD" # Kafka compiles itself for a while; does not count
for i in $(seq "$ROUNDS"); do
	if [ $((i % 2)) = 1 ]; then
		round old "$OLD"
		round new "$NEW"
	else
		round new "$NEW"
		round old "$OLD"
	fi
done
python3 - "$OUT" <<'END'
import statistics
import sys
rows = [line.split() for line in open(sys.argv[1], encoding="utf-8")]
for name, column in (("inst/s", 1), ("CPU us / inst", 5), ("of Kafka", 6), ("peak MB", 7)):
    old, new = (statistics.median(float(r[column]) for r in rows if r[0] == build) for build in ("old", "new"))
    print(f"{name:<14} old {old:>9.1f}   new {new:>9.1f}   new / old {new / old if old else 0:.2f}")
END
