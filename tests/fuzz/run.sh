#!/usr/bin/env bash
# Fuzz targets: builds them with clang into build/fuzz, runs each on its kept corpus and on what was found before, then for
# some seconds on new inputs; a crash, a leak, a property that does not hold, or too much time or memory fails.
#   tests/fuzz/run.sh [TARGET...]           all targets; SLUICE_FUZZ=SECONDS for each (10)
#   tests/fuzz/run.sh --merge DIR [TARGET...]  keeps what DIR/TARGET and the cache add to the corpus, smallest inputs first
# New inputs go to a cache outside the tree (SLUICE_FUZZ_CACHE). A failing input stays in build/fuzz/artifacts/TARGET; when
# it is mended, it goes to crashes/TARGET. One line a target; ends with "N passed, N failed".
set -u
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(cd "$HERE/../.." && pwd)
cd "$ROOT" || exit 2
BUILD=$ROOT/build/fuzz
SECONDS_EACH=${SLUICE_FUZZ:-10}
CACHE=${SLUICE_FUZZ_CACHE:-${SLUICE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}/fuzz}
AT_A_TIME=2
ALL=$(cd "$HERE" && echo fuzz_*.c | sed 's/fuzz_\([a-z0-9]*\)\.c/\1/g')
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1} UBSAN_OPTIONS=print_stacktrace=1
for name in ${!SLUICE_@}; do unset "$name"; done # the configuration target reads no one's settings

merge="" targets=""
while [ $# -gt 0 ]; do
	case $1 in
	--merge) merge=${2:?--merge wants a folder}; shift ;;
	-*) sed -n '2,8p' "${BASH_SOURCE[0]}" | sed 's/^# \{0,1\}//' >&2; exit 2 ;;
	*)
		[ -f "$HERE/fuzz_$1.c" ] || { echo "no target $1; there are: $ALL" >&2; exit 2; }
		targets="$targets $1"
		;;
	esac
	shift
done
targets=${targets:-$ALL}
[[ $SECONDS_EACH =~ ^[0-9]+$ ]] || { echo "SLUICE_FUZZ=$SECONDS_EACH: seconds are wanted" >&2; exit 2; }
mkdir -p "$BUILD/log" || exit 2
trap 'kill $(jobs -p) 2>/dev/null; wait; exit 130' INT TERM

# --- build ---

start=$SECONDS
launcher=()
command -v ccache >/dev/null && launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)
flags="-O1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined"
if ! cmake -S "$ROOT" -B "$BUILD" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_C_COMPILER=clang "-DCMAKE_C_FLAGS=$flags" \
	-DSLUICE_FUZZ=ON "${launcher[@]}" >"$BUILD/log/build" 2>&1 ||
	! cmake --build "$BUILD" -j "$AT_A_TIME" --target fuzz >>"$BUILD/log/build" 2>&1; then
	grep -nE -A12 'FAILED|error:|CMake Error' "$BUILD/log/build" | tail -60
	echo "not ok build: $BUILD/log/build"
	echo "0 passed, 1 failed"
	exit 1
fi
printf '%-11s %-6s %57d s\n' build ok $((SECONDS - start))

# --- one target ---

# evaluate alone may meet what only R7's watchdog stops (fuzz_evaluate.c): in a process of its own, where that is forgiven.
options() { # target, seconds
	echo "-max_total_time=$2 -timeout=20 -rss_limit_mb=2048 -print_final_stats=1"
	# libfyaml's own leak (suppress.c) would have LeakSanitizer look after each input; here it looks once, at the end
	case $1 in definition | openapi | config | state) echo "-detect_leaks=0" ;; esac
	[ "$1" != evaluate ] || echo "-fork=1 -ignore_timeouts=1 -ignore_ooms=1"
}

# Coverage and runs are told differently with -fork.
numbers() { # log; prints runs, coverage, corpus
	local last
	last=$(grep -aoE '^#[0-9]+.*cov: [0-9]+ .*corp: [0-9]+' "$1" | tail -1)
	runs=$(grep -aoE 'number_of_executed_units: [0-9]+' "$1" | grep -oE '[0-9]+' | tail -1)
	[ -n "$runs" ] || runs=$(grep -oE '^#[0-9]+' <<<"$last" | tr -d '#')
	cov=$(grep -oE 'cov: [0-9]+' <<<"$last" | grep -oE '[0-9]+')
	corpus=$(grep -oE 'corp: [0-9]+' <<<"$last" | grep -oE '[0-9]+')
}

run_target() { # target: one line, 0 or 1
	local target=$1 start=$SECONDS code=0 log=$BUILD/log/$1 art=$BUILD/artifacts/$1 what=ok
	local bin=$BUILD/tests/fuzz/fuzz_$target
	mkdir -p "$art" "$CACHE/$target"
	: >"$log"
	touch "$log.began"
	# what was found once must never come back
	for found in "$HERE/crashes/$target"/*; do
		[ -e "$found" ] || continue
		"$bin" -timeout=20 -rss_limit_mb=2048 -artifact_prefix="$art/" "$found" >>"$log" 2>&1 || { code=1; what=$found; break; }
	done
	if [ $code = 0 ]; then
		# shellcheck disable=SC2046 # options are words
		"$bin" $(options "$target" "$SECONDS_EACH") -artifact_prefix="$art/" "$CACHE/$target" "$HERE/corpus/$target" >>"$log" 2>&1 ||
			code=1
		[ $code = 0 ] || what=$(find "$art" -newer "$log.began" -type f | head -1)
		what=${what:-"unknown; see $log, and for a leak run the target on the cache with -detect_leaks=1"}
	fi
	if [ $code = 0 ] && ! grep -qE 'cov: [1-9]' "$log"; then code=1 what=$log; fi # it must have run
	numbers "$log"
	printf '%-11s %-6s %9s runs %6s inputs %6s covered %5d s\n' "$target" "$([ $code = 0 ] && echo ok || echo FAILED)" \
		"${runs:--}" "${corpus:--}" "${cov:--}" $((SECONDS - start))
	[ $code = 0 ] && return 0
	echo "  input: $what"
	grep -aE 'does not hold|SUMMARY|runtime error|BUG at|^ +#[0-9]+ .*/(common|services|tests)/' "$log" | head -12 | sed 's/^ */  /'
	return 1
}

# --- corpora ---

merge_target() {
	local target=$1 bin=$BUILD/tests/fuzz/fuzz_$1 new
	new=$(mktemp -d)
	mkdir -p "$HERE/corpus/$target" "$CACHE/$target"
	local from=("$HERE/corpus/$target" "$CACHE/$target")
	[ -d "$merge/$target" ] && from+=("$merge/$target")
	"$bin" -merge=1 -use_counters=0 -timeout=20 -rss_limit_mb=2048 "$new" "${from[@]}" >"$BUILD/log/$target.merge" 2>&1 || true
	if [ -n "$(ls -A "$new")" ]; then
		rm -rf "$HERE/corpus/$target"
		mv "$new" "$HERE/corpus/$target"
		chmod 755 "$HERE/corpus/$target"
	fi
	printf '%-11s %6d inputs %9d bytes\n' "$target" "$(find "$HERE/corpus/$target" -type f | wc -l)" \
		"$(find "$HERE/corpus/$target" -type f -printf '%s\n' | awk '{n += $1} END {print n + 0}')"
}

if [ -n "$merge" ]; then
	for target in $targets; do merge_target "$target"; done
	exit
fi

# two at a time; their lines come as they end
results=$(mktemp)
trap 'rm -f "$results"' EXIT
for target in $targets; do
	while [ "$(jobs -rp | wc -l)" -ge $AT_A_TIME ]; do wait -n; done
	{ out=$(run_target "$target") && echo ok >>"$results" || echo bad >>"$results"; echo "$out"; } &
done
wait
ok=$(grep -c ok "$results") bad=$(grep -c bad "$results")
echo "$ok passed, $bad failed"
[ "$bad" = 0 ] && [ "$ok" != 0 ]
