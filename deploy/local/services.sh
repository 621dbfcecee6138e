#!/usr/bin/env bash
# Coordinator, executors and timer on this machine; one that dies is started again.
#   services.sh start DIR [EXECUTORS [COORDINATORS [TIMERS]]]   (default 2 1 1); logs and process ids in DIR
#   services.sh stop DIR                                        clean stop (drain, commit, leave the groups)
#   services.sh status DIR
# Settings come from the environment (SLUICE_...); SLUICE_BIN is the folder of the programs. Waits until all are ready.
set -u
NAME=services.sh
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$HERE/lib.sh"
BIN=${SLUICE_BIN:-$HERE/../../build/release/bin}

# Runs one program until it is told to stop: exit 0 is a stop on request, 2 a mistake in the configuration.
supervise() {
	local name=$1 program=$2 ordinal=$3 child=0 code
	trap '[ $child = 0 ] || kill -TERM $child 2>/dev/null; stopping=1' TERM INT
	stopping=0
	while [ $stopping = 0 ]; do
		rm -f "$DIR/$name.port"
		env -u SLUICE_BIN -u SLUICE_CACHE "$BIN/$program" --service.ordinal "$ordinal" --http.port_file "$DIR/$name.port" >>"$DIR/$name.log" 2>&1 &
		child=$!
		echo $child >"$DIR/$name.pid"
		wait $child
		code=$?
		while kill -0 $child 2>/dev/null; do wait $child; code=$?; done
		[ $stopping = 1 ] && break
		echo "$(date -u +%FT%TZ) $name ended with $code" >>"$DIR/$name.log"
		[ $code = 2 ] && break
		[ $code = 0 ] || sleep 0.3
	done
	rm -f "$DIR/$name.pid" "$DIR/$name.super"
}

launch() {
	local name=$1 program=$2 ordinal=$3
	[ -x "$BIN/$program" ] || die "$BIN/$program is not there; build first"
	: >>"$DIR/$name.log"
	SUPERVISE_NAME=$name SUPERVISE_PROGRAM=$program SUPERVISE_ORDINAL=$ordinal setsid "$0" supervise "$DIR" </dev/null >/dev/null 2>&1 &
	echo $! >"$DIR/$name.super"
}

ready() {
	local port
	port=$(cat "$DIR/$1.port" 2>/dev/null) || return 1
	[ -n "$port" ] || return 1
	REASON=$(exec 3<>"/dev/tcp/127.0.0.1/$port" && printf 'GET /readyz HTTP/1.0\r\n\r\n' >&3 && cat <&3) 2>/dev/null || return 1
	case $REASON in *" 200 "*) return 0 ;; *) return 1 ;; esac
}

start() {
	mkdir -p "$DIR" || die "cannot write $DIR"
	DIR=$(cd "$DIR" && pwd)
	local names="" i
	for i in $(seq 1 "${COORDINATORS:-1}"); do launch "coordinator-$i" sluice-coordinator "$i"; names="$names coordinator-$i"; done
	for i in $(seq 1 "${EXECUTORS:-2}"); do launch "executor-$i" sluice-executor "$i"; names="$names executor-$i"; done
	for i in $(seq 1 "${TIMERS:-1}"); do launch "timer-$i" sluice-timer "$i"; names="$names timer-$i"; done
	for i in $names; do
		local n=600
		until ready "$i"; do
			n=$((n - 1))
			[ -e "$DIR/$i.super" ] || die "$i has stopped: $(tail -2 "$DIR/$i.log")"
			[ $n -gt 0 ] || die "$i is not ready after 60 s; see $DIR/$i.log: $(tail -1 "$DIR/$i.log")"
			sleep 0.1
		done
	done
}

stop() {
	DIR=$(cd "$DIR" 2>/dev/null && pwd) || return 0
	local file pid pids=""
	for file in "$DIR"/*.super; do
		[ -s "$file" ] || continue
		pid=$(cat "$file")
		[ -r "/proc/$pid/cmdline" ] && tr "\\0" " " <"/proc/$pid/cmdline" 2>/dev/null | grep -qF services.sh || { rm -f "$file"; continue; }
		kill -TERM "$pid" && pids="$pids $pid"
	done
	for pid in $pids; do
		wait_gone "$pid" 15 || kill -KILL "$pid" 2>/dev/null
	done
	for file in "$DIR"/coordinator-*.pid "$DIR"/executor-*.pid "$DIR"/timer-*.pid; do # Kafka and Redis may share the folder
		[ -s "$file" ] || continue
		pid=$(cat "$file")
		[ -r "/proc/$pid/cmdline" ] || continue
		case $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null) in *sluice-*) kill -KILL "$pid" 2>/dev/null ;; esac
		rm -f "$file"
	done
	rm -f "$DIR"/*.super
}

status() {
	DIR=$(cd "$DIR" 2>/dev/null && pwd) || { echo stopped; exit 1; }
	local file name any=1
	for file in "$DIR"/*.super; do
		[ -e "$file" ] || continue
		name=$(basename "$file" .super)
		any=0
		ready "$name" && echo "$name ready, process $(cat "$DIR/$name.pid" 2>/dev/null)" || echo "$name not ready"
	done
	[ $any = 0 ] || echo stopped
	exit $any
}

[ $# -ge 2 ] || { sed -n '2,6p' "${BASH_SOURCE[0]}" | sed 's/^# \{0,1\}//' >&2; exit 2; }
DIR=$2
EXECUTORS=${3:-2} COORDINATORS=${4:-1} TIMERS=${5:-1}
case $1 in
start | stop | status) "$1" ;;
supervise) supervise "$SUPERVISE_NAME" "$SUPERVISE_PROGRAM" "$SUPERVISE_ORDINAL" ;;
*) echo "$NAME: unknown command $1" >&2; exit 2 ;;
esac
