#!/usr/bin/env bash
# The adapters and the three services under the thread sanitizer (preset tsan): the contract tests on real Kafka and Redis, then a few
# end-to-end tests through the services. A report of the sanitizer fails the test in which it came. Ends with "N passed, N failed".
#   tests/tsan.sh [BUILD_DIR]                 default build/tsan; what is missing there is built
# SLUICE_KAFKA_BROKERS, SLUICE_REDIS_URL      used when both are given; otherwise both are started here
set -u
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT" || exit 2
BUILD=$(realpath -m "${1:-build/tsan}")
HERE=$ROOT/tests/tsan
LOG=$BUILD/log
CONTRACTS="clock store admin note broker group"
# every client and mode through all three services; the watchdog's thread ends a process; the helper process of secrets
E2E=(test_clients.py test_hard_budget.py test_timing.py -k "test_clients or never_ends or secret")
passed=0 failed=0 DIR="" child=""
finish() {
	trap '' INT TERM
	[ -z "$child" ] || { kill "$child" 2>/dev/null; wait "$child" 2>/dev/null; }
	if [ -n "$DIR" ]; then
		deploy/local/kafka.sh stop "$DIR"
		deploy/local/redis.sh stop "$DIR"
		rm -rf "$DIR"
	fi
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
verdict() { # ok or not, name
	if [ "$1" = 0 ]; then passed=$((passed + 1)); echo "ok $2"; else failed=$((failed + 1)); echo "not ok $2"; fi
}
add() { # file with "N passed, N failed", exit code, name
	local ok bad
	read -r ok _ bad _ <<<"$(grep -aE '^[0-9]+ passed, [0-9]+ failed$' "$1" | tail -1)"
	ok=${ok:-0} bad=${bad:-0}
	if [ "$bad" = 0 ] && { [ "$2" != 0 ] || [ "$ok" = 0 ] || grep -qa 'WARNING: ThreadSanitizer' "$1"; }; then bad=1; fi
	passed=$((passed + ok)) failed=$((failed + bad))
	echo "$3: $ok passed, $bad failed, $((SECONDS - began)) s"
	[ "$bad" = 0 ] || tail -200 "$1"
}

# --- build: only what runs here ---

began=$SECONDS
mkdir -p "$LOG"
launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)
targets=(bin/sluice bin/sluice-coordinator bin/sluice-executor bin/sluice-timer)
for port in $CONTRACTS; do targets+=("contract_$port"); done
build() {
	[ -e "$BUILD/build.ninja" ] || cmake --preset tsan -B "$BUILD" "${launcher[@]}" || return 1
	cmake --build "$BUILD" --target "${targets[@]}" || return 1
	cc -std=gnu11 -Wall -Wextra -Werror -O1 -g -fPIC -shared "$HERE/c11threads.c" -o "$BUILD/libc11threads.so" &&
		cc -std=gnu11 -Wall -Wextra -Werror -O1 -g -fsanitize=thread "$HERE/proof.c" -o "$BUILD/tsan_proof"
}
if ! build >"$LOG/tsan-build" 2>&1; then
	grep -nE -A12 'FAILED|error:|CMake Error' "$LOG/tsan-build" | tail -60
	echo "0 passed, 1 failed"
	exit 1
fi
echo "build: $((SECONDS - began)) s"

export TSAN_OPTIONS="suppressions=$HERE/suppressions second_deadlock_stack=1"
tsan() { LD_PRELOAD=$BUILD/libc11threads.so "$@"; }

# --- is anything noticed at all? ---

began=$SECONDS
tsan "$BUILD/tsan_proof" race >"$LOG/tsan-proof" 2>&1
grep -q 'WARNING: ThreadSanitizer: data race' "$LOG/tsan-proof"
verdict $? "a race between C11 threads is noticed"
tsan "$BUILD/tsan_proof" lock >"$LOG/tsan-proof" 2>&1 && grep -qx 2000 "$LOG/tsan-proof" && ! grep -q ThreadSanitizer "$LOG/tsan-proof"
verdict $? "a C11 lock is seen"

# --- real Kafka and Redis ---

if [ -z "${SLUICE_KAFKA_BROKERS:-}" ] || [ -z "${SLUICE_REDIS_URL:-}" ]; then
	DIR=$(mktemp -d "${TMPDIR:-/tmp}/sluice-tsan.XXXXXX")
	if ! deploy/local/kafka.sh start "$DIR" >/dev/null || ! deploy/local/redis.sh start "$DIR" >/dev/null; then
		echo "$passed passed, $((failed + 1)) failed"
		exit 1
	fi
	set -a
	. "$DIR/kafka.env"
	. "$DIR/redis.env"
	set +a
fi
unset SLUICE_KAFKA_DIR SLUICE_KAFKA_SCRIPT # no contract test may kill the broker while the other half of the tests uses it
export SLUICE_REQUIRE_REAL=1

# --- contract tests beside the end-to-end tests ---

contracts() {
	local port
	for port in $CONTRACTS; do
		tsan timeout -k 10 180 "$BUILD/tests/contract_$port" >"$LOG/tsan-contract-$port" 2>&1
		echo "$port $?" >>"$LOG/tsan-contracts"
	done
}
began=$SECONDS
: >"$LOG/tsan-contracts"
contracts &
child=$!
SLUICE_BIN=$BUILD/bin tsan timeout --foreground -k 30 300 tests/e2e/run.sh -p no:warnings "${E2E[@]}" >"$LOG/tsan-e2e" 2>&1
add "$LOG/tsan-e2e" $? "services"
wait "$child"
child=""
for port in $CONTRACTS; do
	grep -qx "$port 0" "$LOG/tsan-contracts"
	add "$LOG/tsan-contract-$port" $? "contract $port"
done
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed != 0 ]
