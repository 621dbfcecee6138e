#!/usr/bin/env bash
# End-to-end tests: the real programs on real Kafka and Redis.
#   tests/e2e/run.sh [pytest arguments]     such as -k kills, or -x
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
	echo pytest==9.2.0 confluent-kafka==2.16.1 cloudevents==2.2.0 fastavro==1.13.1 redis==8.1.0
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
exec "$VENV/bin/python" -m pytest -q -rs -p no:cacheprovider --rootdir "$HERE" --durations=15 --durations-min=3 "$@"
