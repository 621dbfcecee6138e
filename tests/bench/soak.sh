#!/usr/bin/env bash
# Soak: MINUTES of a steady mixed load (soak.c tells which), sampled every five seconds into soak.csv and drawn as soak.svg; prints the
# numbers. Exit 1 if an instance was lost. README.md tells how to read it.
#   tests/bench/soak.sh MINUTES [FOLDER]      FOLDER for soak.csv and soak.svg (default: build/soak)
# From the environment: RATE events/s (500), RETENTION of ended instances (60s: also what Redis holds must then stay level),
# and what lib.sh tells.
set -eu
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$ROOT/tests/bench/lib.sh"
case ${1:-} in
"" | *[!0-9.]*) sed -n '4p' "${BASH_SOURCE[0]}" | sed 's/^# \{0,1\}//' >&2; exit 2 ;;
esac
MINUTES=$1
mkdir -p "${2:-$ROOT/build/soak}"
OUT=$(cd "${2:-$ROOT/build/soak}" && pwd)
export SLUICE_INSTANCE_RETENTION_MS=${RETENTION:-60s} SLUICE_CORRELATION_IDLE_MS=${RETENTION:-60s}
bench_begin
STUB_PORT=$(free_port)
bench_stub "$STUB_PORT"
services start 1 1 1
for name in start pair call sleep timeout; do deploy $name; done
lost=0
"$DIR/soak" "$(awk -v m="$MINUTES" 'BEGIN {print m * 60}')" "${RATE:-500}" \
	coordinator="$DIR/coordinator-1.pid" executor="$DIR/executor-1.pid" timer="$DIR/timer-1.pid" redis="$DIR/redis.pid" \
	kafka="$DIR/kafka.pid" group:sluice.coordinator-route=sluice.events group:sluice.coordinator-own=sluice.instances \
	group:sluice.executor=sluice.actions group:sluice.timer=sluice.timers >"$OUT/soak.csv" || lost=1
for name in coordinator-1 executor-1 timer-1; do
	! grep -h ' ended with ' "$DIR/$name.log" || lost=1 # none may have been started again
done
python3 tests/bench/plot.py "$OUT/soak.csv" "$OUT/soak.svg" || lost=1
exit $lost
