#!/usr/bin/env bash
# One real Redis on loopback, with the settings that Sluice wants (append only file, fsync always, no eviction).
#   redis.sh start DIR    start it (again); writes DIR/redis.env with SLUICE_REDIS_URL
#   redis.sh stop DIR     stop it cleanly; data and port stay for the next start
#   redis.sh kill9 DIR    kill it as a power cut would
#   redis.sh status DIR   "running PID ADDRESS" (exit 0) or "stopped" (exit 1)
# A new one takes a free port, or SLUICE_REDIS_PORT.
# More settings for redis-server, such as "--requirepass x", go into SLUICE_REDIS_ARGS.
set -u
NAME=redis.sh
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$HERE/lib.sh"

running() {
	pid_of "$DIR/redis.pid" "redis-server 127.0.0.1:$(cat "$DIR/redis.port" 2>/dev/null)"
}

start() {
	local pid port n
	need redis-server redis-server
	mkdir -p "$DIR/redis-data" || die "cannot write $DIR"
	DIR=$(cd "$DIR" && pwd)
	if running >/dev/null; then
		cat "$DIR/redis.env"
		return
	fi
	[ -s "$DIR/redis.port" ] || echo "${SLUICE_REDIS_PORT:-$(free_port)}" >"$DIR/redis.port"
	port=$(cat "$DIR/redis.port")
	wait_free "$port" 10 || die "port $port is taken by another program; stop it, or remove $DIR/redis.port"
	# shellcheck disable=SC2086
	setsid nohup redis-server --port "$port" --bind 127.0.0.1 --dir "$DIR/redis-data" --appendonly yes --appendfsync always \
		--save '' --maxmemory-policy noeviction ${SLUICE_REDIS_ARGS:-} >"$DIR/redis.log" 2>&1 </dev/null &
	pid=$!
	echo "$pid" >"$DIR/redis.pid"
	n=600
	until grep -q 'Ready to accept connections' "$DIR/redis.log" 2>/dev/null && listening "$port"; do
		kill -0 "$pid" 2>/dev/null || die "redis-server ended: $(tail -1 "$DIR/redis.log"); see $DIR/redis.log"
		n=$((n - 1))
		[ $n -gt 0 ] || die "redis-server is not ready after 30 s; see $DIR/redis.log"
		sleep 0.05
	done
	echo "SLUICE_REDIS_URL=redis://127.0.0.1:$port/0" >"$DIR/redis.env"
	cat "$DIR/redis.env"
}

stop() {
	local pid
	DIR=$(cd "$DIR" 2>/dev/null && pwd) || return 0
	pid=$(running) || return 0
	kill -TERM "$pid"
	if ! wait_gone "$pid" 10; then
		kill -KILL "$pid"
		wait_gone "$pid" 5 || die "process $pid does not end"
	fi
	rm -f "$DIR/redis.pid"
}

kill9() {
	local pid
	DIR=$(cd "$DIR" 2>/dev/null && pwd) || die "no redis-server in $DIR"
	pid=$(running) || die "no redis-server is running in $DIR"
	kill -KILL "$pid"
	wait_gone "$pid" 5
	rm -f "$DIR/redis.pid"
}

status() {
	local pid
	DIR=$(cd "$DIR" 2>/dev/null && pwd) || { echo stopped; exit 1; }
	if pid=$(running); then
		echo "running $pid 127.0.0.1:$(cat "$DIR/redis.port")"
	else
		echo stopped
		exit 1
	fi
}

[ $# -eq 2 ] || { sed -n '2,8p' "${BASH_SOURCE[0]}" | sed 's/^# \{0,1\}//' >&2; exit 2; }
DIR=$2
case $1 in
start | stop | kill9 | status) "$1" ;;
*) echo "$NAME: unknown command $1" >&2; exit 2 ;;
esac
