#!/usr/bin/env bash
# Runs the contract tests of a build folder against real Kafka and Redis, started through deploy/local for the time of the run.
#   tests/contract/run.sh BUILD_DIR [FILTER]
set -u
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
LOCAL=$HERE/../../deploy/local
[ $# -ge 1 ] || { sed -n '2,3p' "${BASH_SOURCE[0]}" | sed 's/^# \{0,1\}//' >&2; exit 2; }
BUILD=$1
FILTER=${2:-}
DIR=$(mktemp -d "${TMPDIR:-/tmp}/sluice-contract.XXXXXX")
finish() {
	"$LOCAL/kafka.sh" stop "$DIR"
	"$LOCAL/redis.sh" stop "$DIR"
	rm -rf "$DIR"
}
trap finish EXIT
set -a
"$LOCAL/redis.sh" start "$DIR" >/dev/null || exit 1
"$LOCAL/kafka.sh" start "$DIR" >/dev/null || exit 1
. "$DIR/redis.env"
. "$DIR/kafka.env"
SLUICE_REQUIRE_REAL=1
SLUICE_KAFKA_DIR=$DIR
SLUICE_KAFKA_SCRIPT=$LOCAL/kafka.sh
set +a
failed=0
for port in clock store memory admin broker group; do
	echo "== $port"
	"$BUILD/tests/contract_$port" ${FILTER:+"$FILTER"} || failed=1
done
exit $failed
