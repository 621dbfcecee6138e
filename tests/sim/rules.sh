#!/bin/bash
# Each rule of common/base/rules.h is broken in turn: the simulator must notice within 10 000 seeds, and not without the break.
#   tests/sim/rules.sh [--quick] [--jobs N] [BUILD]    default build/switches
# caught.txt names a seed for each rule. --quick runs only that one, with and without the rule; where it no longer notices, the
# first seeds are tried and the new one is named. Without --quick all seeds are tried, and caught.txt is written anew.
# One line per rule, "ok RULE SEED" or "not ok RULE"; ends with "N passed, N failed".
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$root/build/switches how=--search jobs=2
while [ $# -gt 0 ]; do
	case $1 in
	--quick) how=--check ;;
	--jobs) jobs=$2 && shift ;;
	-*) sed -n '2,6p' "${BASH_SOURCE[0]}" | sed 's/^# \{0,1\}//' >&2; exit 2 ;;
	*) build=$1 ;;
	esac
	shift
done
log=$build/rules-build.log
mkdir -p "$build" || exit 1
launcher=()
! command -v ccache >/dev/null || launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_FLAGS=-DSLUICE_SIM_SWITCHES "${launcher[@]}" >"$log" 2>&1 &&
	ninja -C "$build" -j "$jobs" sluice-sim >>"$log" 2>&1 || { tail -20 "$log"; exit 1; }
exec nice "$build/bin/sluice-sim" "$how" "$here/caught.txt" -n 9999 --jobs "$jobs"
