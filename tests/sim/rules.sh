#!/bin/sh
# Each rule of common/base/rules.h is broken in turn: the simulator must notice within 10 000 seeds.
# Usage: tests/sim/rules.sh [BUILD-FOLDER]
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build/switches}
log=$build/rules-build.log
mkdir -p "$build"
cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_FLAGS=-DSLUICE_SIM_SWITCHES >"$log" 2>&1 &&
	ninja -C "$build" sluice-sim >>"$log" 2>&1 || { tail -20 "$log"; exit 1; }
missed=0
for rule in $(sed -n 's/^[[:space:]]*R(\([a-z_]*\)).*/\1/p' "$root/common/base/rules.h"); do
	# a broken rule may also end in an assertion of our own, which ends the process: seeds in small lots
	first=1 found=
	while [ "$first" -lt 10000 ] && [ -z "$found" ]; do
		found=$(nice "$build/bin/sluice-sim" --break "$rule" --seed "$first" -n 500 --stop 2>&1 |
			grep -m 1 -A 1 -e '^seed [0-9]*: violated' -e 'BUG at' | tr '\n' ' ' | cut -c 1-150)
		first=$((first + 500))
	done
	if [ -n "$found" ]; then
		printf '%-14s %s\n' "$rule" "$found"
	else
		printf '%-14s NOT NOTICED within 10 000 seeds\n' "$rule"
		missed=$((missed + 1))
	fi
done
exit "$((missed > 0))"
