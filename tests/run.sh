#!/usr/bin/env bash
# All tests: installs what is missing, builds with sanitizers (preset dev), runs the parts, ends with "N passed, N failed".
#   tests/run.sh [--fast] [PART...]
# PART        unit leak-proof scenarios tool sim rules fuzz contract tsan e2e tidy; all of them when none is named
# --fast      what needs neither Kafka nor Redis, without clang: unit leak-proof scenarios tool tidy
# SLUICE_FUZZ=SECONDS                       for each fuzz target (10)
# SLUICE_REQUIRE_REAL=1                     contract, tsan and e2e fail where no real Kafka and Redis can be had
# SLUICE_KAFKA_BROKERS, SLUICE_REDIS_URL    used when both are given; otherwise both are started here, and stopped
# Each part's output is in build/dev/log; that of a failed one is printed. Exit 0: nothing failed and something passed.
set -u
{ # read as a whole before it runs, so that an edit cannot disturb a run
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$ROOT" || exit 2
BUILD=$ROOT/build/dev
LOG=$BUILD/log
ALL="unit leak-proof scenarios tool sim rules fuzz contract tsan e2e tidy"
SANITIZER='ERROR: AddressSanitizer|LeakSanitizer|WARNING: ThreadSanitizer|runtime error: '
REQUIRE=${SLUICE_REQUIRE_REAL:-0}
BROKERS=${SLUICE_KAFKA_BROKERS:-}
REDIS=${SLUICE_REDIS_URL:-}
FUZZ=${SLUICE_FUZZ:-10}
# a setting of the caller's shell must not change what the programs under test do
for name in ${!SLUICE_@}; do [ "$name" = SLUICE_CACHE ] || unset "$name"; done
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1} UBSAN_OPTIONS=print_stacktrace=1
unset MAKEFLAGS

fast=0 parts=""
for arg in "$@"; do
	case $arg in
	--fast) fast=1 ;;
	unit | leak-proof | scenarios | tool | sim | rules | fuzz | contract | tsan | e2e | tidy) parts="$parts $arg" ;;
	*) sed -n '2,9p' "${BASH_SOURCE[0]}" | sed 's/^# \{0,1\}//' >&2; exit 2 ;;
	esac
done
[ -n "$parts" ] || { [ $fast = 1 ] && parts="unit leak-proof scenarios tool tidy" || parts=$ALL; }

began=$SECONDS passed=0 failed=0 real="" DIR="" child=""
finish() {
	trap '' INT TERM
	if [ -n "$child" ]; then
		kill -TERM -- "-$child" 2>/dev/null && wait "$child"
	fi
	if [ -n "$DIR" ]; then
		deploy/local/kafka.sh stop "$DIR"
		deploy/local/redis.sh stop "$DIR"
		rm -rf "$DIR"
		DIR=""
	fi
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

row() { # name, result, passed, failed, seconds
	printf '%-11s %-8s %5s passed %4s failed %5s s\n' "$@"
}

# --- build ---

start=$SECONDS
deploy/packages.sh build run test || { echo "0 passed, 1 failed"; exit 1; }
mkdir -p "$LOG"
launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)
if ! cmake --preset dev "${launcher[@]}" >"$LOG/build" 2>&1 || ! cmake --build --preset dev >>"$LOG/build" 2>&1; then
	grep -nE -A12 'FAILED|error:|CMake Error' "$LOG/build" | tail -100
	row build FAILED 0 1 $((SECONDS - start))
	echo "0 passed, 1 failed"
	exit 1
fi
row build ok - - $((SECONDS - start))

# --- real Kafka and Redis, once for all parts that want them ---

real_parts() {
	[ -z "$real" ] || return "$real"
	real=0
	if [ -n "$BROKERS" ] && [ -n "$REDIS" ]; then
		echo "Kafka $BROKERS, Redis $REDIS (given)"
		return 0
	fi
	DIR=$(mktemp -d "${TMPDIR:-/tmp}/sluice-tests.XXXXXX")
	if deploy/local/kafka.sh start "$DIR" >/dev/null && deploy/local/redis.sh start "$DIR" >/dev/null; then
		. "$DIR/kafka.env"
		. "$DIR/redis.env"
		BROKERS=$SLUICE_KAFKA_BROKERS REDIS=$SLUICE_REDIS_URL
		unset SLUICE_KAFKA_BROKERS SLUICE_REDIS_URL
	else
		real=1
		echo "no real Kafka and Redis can be had here; the reason is above"
	fi
	return $real
}

export_real() {
	export SLUICE_KAFKA_BROKERS=$BROKERS SLUICE_REDIS_URL=$REDIS SLUICE_REQUIRE_REAL=1 SLUICE_BIN=$BUILD/bin
	[ -z "$DIR" ] || export SLUICE_KAFKA_DIR=$DIR SLUICE_KAFKA_SCRIPT=$ROOT/deploy/local/kafka.sh
}

# --- the parts: each prints what it likes; its last line "N passed, N failed" and its exit code count ---

tests_of_ctest() { # jobs, seconds a program may take, pattern of names
	local code=0
	ctest --test-dir "$BUILD" -j "$1" --timeout "$2" -R "$3" --output-on-failure --no-tests=error \
		--test-output-size-passed 1000000 --output-junit "$LOG/junit.xml" || code=1
	python3 tests/tally.py "$LOG/junit.xml" || code=1
	return $code
}

part_unit() {
	tests_of_ctest "$(nproc)" 300 '^unit/'
}

# Each mistake of tests/tidy/proof.c must fail; else a green unit part means nothing.
part_leak-proof() {
	local ok=0 bad=0 mistake
	for mistake in leak overflow undefined; do
		if ctest --test-dir "$BUILD" -C proof -R "^proof/$mistake\$" --no-tests=error >"$LOG/proof" 2>&1; then
			echo "not ok $mistake: the mistake was not noticed"
			bad=$((bad + 1))
		elif grep -q 'Error regular expression found in output' "$LOG/proof"; then
			echo "ok $mistake is noticed"
			ok=$((ok + 1))
		else
			echo "not ok $mistake: failed for another reason"
			cat "$LOG/proof"
			bad=$((bad + 1))
		fi
	done
	echo "$ok passed, $bad failed"
	[ $bad = 0 ]
}

part_scenarios() {
	local examples
	mapfile -t examples < <(find examples -name '*.scenario.*' | sort)
	timeout --foreground -k 30 300 "$BUILD/bin/sluice" test tests/scenarios "${examples[@]}"
}

# `sluice test` itself: what it must refuse, report and count.
part_tool() {
	timeout --foreground -k 30 300 python3 tests/scenarios/check_tool.py "$BUILD/bin/sluice"
}

part_sim() {
	tests_of_ctest 1 600 '^sim'
}

# Each rule of the protocol is broken in a build of its own: the simulator notices.
part_rules() {
	timeout --foreground -k 30 600 tests/sim/rules.sh --quick
}

part_fuzz() {
	SLUICE_FUZZ=$FUZZ timeout --foreground -k 30 $((900 + 10 * FUZZ)) tests/fuzz/run.sh
}

part_contract() {
	export_real
	tests_of_ctest 1 600 '^contract/'
}

part_tsan() {
	export_real
	timeout --foreground -k 30 600 tests/tsan.sh
}

part_e2e() {
	export_real
	timeout --foreground -k 30 1500 tests/e2e/run.sh
}

part_tidy() {
	local options=()
	[ $fast = 0 ] || options=(--fast)
	timeout --foreground -k 30 900 tests/tidy/run.sh "$BUILD" "${options[@]}"
}

run_part() {
	local part=$1 start=$SECONDS code=0 counts ok bad
	case $part in
	contract | tsan | e2e)
		if ! real_parts; then
			[ "$REQUIRE" = 1 ] && { failed=$((failed + 1)); row "$part" FAILED 0 1 $((SECONDS - start)); return; }
			row "$part" 'not run' - - $((SECONDS - start))
			return
		fi
		;;
	esac
	if [ "$part" = e2e ] && [ ! -x tests/e2e/run.sh ]; then
		failed=$((failed + 1))
		echo "tests/e2e/run.sh is missing"
		row e2e FAILED 0 1 0
		return
	fi
	set -m # a process group of its own, so that a signal to us can end all of it
	("part_$part") >"$LOG/$part" 2>&1 </dev/null &
	child=$!
	set +m
	wait "$child" || code=$?
	child=""
	counts=$(grep -aE '^[0-9]+ passed, [0-9]+ failed$' "$LOG/$part" | tail -1)
	read -r ok _ bad _ <<<"${counts:-0 passed, 0 failed}"
	# a part that ended badly, said nothing, or in which a sanitizer spoke, has failed, whatever it counted
	if [ "$bad" = 0 ] && { [ $code != 0 ] || [ "$ok" = 0 ]; }; then bad=1; fi
	if [ "$bad" = 0 ] && [ "$part" != tidy ] && grep -qaE "$SANITIZER" "$LOG/$part"; then bad=1; fi
	passed=$((passed + ok)) failed=$((failed + bad))
	if [ "$bad" != 0 ]; then
		echo "---- $part, from $LOG/$part:"
		grep -avE '^(ok |\[PASS\]|.* Passed  )' "$LOG/$part" | tail -300
		echo "----"
	fi
	row "$part" "$([ "$bad" = 0 ] && echo ok || echo FAILED)" "$ok" "$bad" $((SECONDS - start))
}

for part in $ALL; do
	case " $parts " in *" $part "*) run_part "$part" ;; esac
done
row total "$([ $failed = 0 ] && [ $passed != 0 ] && echo ok || echo FAILED)" $passed $failed $((SECONDS - began))
echo "$passed passed, $failed failed"
[ $failed = 0 ] && [ $passed != 0 ]
exit
}
