#!/usr/bin/env bash
# End-to-end tests: the real programs on real Kafka and Redis.
#   tests/e2e/run.sh [pytest arguments]     such as -k kills, or -x; without any: all, three files at a time, what measures time last
# SLUICE_BIN                                folder of the programs (default build/dev/bin)
# SLUICE_KAFKA_BROKERS, SLUICE_REDIS_URL    used when given; otherwise both are started here
# SLUICE_E2E_KEEP=1                         leaves the logs of the services behind
set -eu
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CACHE=${SLUICE_CACHE:-$HOME/.cache/sluice}
VENV=$CACHE/venv
SLUICE_BIN=$(realpath -m "${SLUICE_BIN:-$HERE/../../build/dev/bin}")
export SLUICE_BIN
need() { command -v "$1" >/dev/null 2>&1 || { echo "tests/e2e: '$1' is not installed; on Debian: apt-get install $2" >&2; exit 2; }; }
need python3 python3-venv
need kcat kcat

packages() {
	echo pytest==9.2.0 pytest-xdist==3.8.0 confluent-kafka==2.16.1 cloudevents==2.2.0 fastavro==1.13.1 redis==8.1.0
}

mkdir -p "$CACHE"
exec 9>"$CACHE/venv.lock"
flock 9
if [ "$(cat "$VENV/.packages" 2>/dev/null)" != "$(packages)" ]; then
	echo "tests/e2e: making $VENV (once)" >&2
	rm -rf "$VENV"
	python3 -m venv "$VENV"
	# shellcheck disable=SC2046
	"$VENV/bin/pip" install --quiet --disable-pip-version-check $(packages)
	packages >"$VENV/.packages"
fi
exec 9>&-

cd "$HERE"
export PYTHONDONTWRITEBYTECODE=1
# All that a run starts has its folder in here, so that nothing outlives it, however it ends.
TMPDIR=$(mktemp -d)
export TMPDIR
child=""
finish() {
	local code=$? folder kind
	set +e
	trap - EXIT
	trap '' INT TERM
	[ -z "$child" ] || { kill -TERM "$child" 2>/dev/null && wait "$child"; }
	for folder in "$TMPDIR"/*/ "$TMPDIR"/*/*/; do
		! ls "$folder"*.super >/dev/null 2>&1 || "$HERE/../../deploy/local/services.sh" stop "$folder"
		for kind in kafka redis; do
			[ ! -e "$folder$kind.pid" ] || "$HERE/../../deploy/local/$kind.sh" stop "$folder"
		done
	done
	pkill -TERM -f -- "$TMPDIR/" 2>/dev/null
	[ -n "${SLUICE_E2E_KEEP:-}" ] && echo "kept: $TMPDIR" || rm -rf "$TMPDIR"
	exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

run() {
	"$VENV/bin/python" -m pytest -q -rs -p no:cacheprovider --rootdir "$HERE" --durations=15 --durations-min=3 "$@" &
	child=$!
	wait "$child" || { child=""; return 1; }
	child=""
}
if [ $# != 0 ]; then
	run "$@"
	exit
fi

# Most tests wait most of the time. Those that measure it run alone, afterwards. Each file stays in one process and in its order.
ALONE="test_many_timers.py test_restart_expressions.py test_timing.py"
code=0
# shellcheck disable=SC2046
run -n 3 --dist loadfile --no-loadscope-reorder $(printf -- '--ignore=%s ' $ALONE) > >(tee "$TMPDIR/first") || code=1
# shellcheck disable=SC2086
run $ALONE > >(tee "$TMPDIR/second") || code=1
awk '/^[0-9]+ passed, [0-9]+ failed$/ {ok += $1; bad += $3} END {printf "%d passed, %d failed\n", ok, bad}' "$TMPDIR/first" "$TMPDIR/second"
exit "$code"
