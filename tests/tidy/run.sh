#!/usr/bin/env bash
# The house rules: first that each rule catches its bad sample, then the rules on the tree, then clang and clang-tidy.
#   tests/tidy/run.sh [BUILD_DIR] [--fast]    default build/dev; --fast leaves out clang and clang-tidy
# One line per check, "ok NAME" or "not ok NAME" with the places; ends with "N passed, N failed".
set -u
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(cd "$HERE/../.." && pwd)
BUILD=$ROOT/build/dev fast=0 ok=0 bad=0
for arg in "$@"; do
	case $arg in
	--fast) fast=1 ;;
	-*) sed -n '2,4p' "${BASH_SOURCE[0]}" | sed 's/^# \{0,1\}//' >&2; exit 2 ;;
	*) BUILD=$arg ;;
	esac
done
[ -e "$BUILD/compile_commands.json" ] || { echo "$BUILD is no build folder; run cmake --preset dev" >&2; exit 2; }
export PYTHONDONTWRITEBYTECODE=1
OUT=$(mktemp) NAMES=$(mktemp)
trap 'rm -f "$OUT" "$NAMES"' EXIT
ctest --test-dir "$BUILD" -N >"$NAMES" 2>/dev/null

result() { # 0 or 1, text
	if [ "$1" = 0 ]; then ok=$((ok + 1)) && echo "ok $2"; else bad=$((bad + 1)) && echo "not ok $2"; fi
}

for sample in "$HERE"/samples/*/; do
	name=$(basename "$sample")
	rule=${name/layer-library/layer}
	case $rule in
	clang | clang-tidy)
		[ $fast = 0 ] || continue
		"$HERE/clang.py" "$BUILD" "$rule" "$sample/bad.c" >"$OUT"
		;;
	*) "$HERE/tidy.py" "$sample" --ctest "$sample/ctest.txt" >"$OUT" ;;
	esac
	# exactly this rule is broken
	[ "$(grep '^not ok' "$OUT" | cut -d' ' -f3)" = "$rule" ]
	result $? "sample $name is caught"
done
for rule in $("$HERE/tidy.py" "$ROOT" --rules); do
	[ -d "$HERE/samples/$rule" ]
	result $? "rule $rule has a sample"
done

"$HERE/tidy.py" "$ROOT" --ctest "$NAMES" | tee "$OUT"
if [ -e "$BUILD/build.ninja" ] && [ -e "$BUILD/bin/sluice-sim" ] && [ -e "$BUILD/bin/sluice-timer" ]; then
	# the tool links no timer: the check must say so
	! "$HERE/objects.py" "$BUILD" bin/sluice >/dev/null
	result $? "another program than the simulator is caught"
	"$HERE/objects.py" "$BUILD" | tee -a "$OUT"
fi
if [ $fast = 0 ]; then
	"$HERE/clang.py" "$BUILD" clang | tee -a "$OUT"
	"$HERE/clang.py" "$BUILD" clang-tidy | tee -a "$OUT"
fi
ok=$((ok + $(grep -c '^ok ' "$OUT")))
bad=$((bad + $(grep -c '^not ok ' "$OUT")))
[ "$(wc -l <"$OUT")" -gt 0 ] || bad=$((bad + 1))
echo "$ok passed, $bad failed"
[ $bad = 0 ]
