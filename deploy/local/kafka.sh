#!/usr/bin/env bash
# One real Kafka node (KRaft) on loopback for tests and for trying things out.
#   kafka.sh start DIR    start it (again); writes DIR/kafka.env with SLUICE_KAFKA_BROKERS
#   kafka.sh stop DIR     stop it cleanly; data and ports stay for the next start
#   kafka.sh kill9 DIR    kill it as a power cut would
#   kafka.sh status DIR   "running PID ADDRESS" (exit 0) or "stopped" (exit 1)
#   kafka.sh fetch        only get the broker's jars
# A new broker takes a free port, or SLUICE_KAFKA_PORT.
# The jars come from Maven Central once and are kept in ${SLUICE_CACHE:-$HOME/.cache/sluice}.
set -u
NAME=kafka.sh
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$HERE/lib.sh"
VERSION=4.1.1
CACHE=${SLUICE_CACHE:-$HOME/.cache/sluice}
LIB=$CACHE/kafka-$VERSION

fetch() {
	[ -e "$LIB/.complete" ] && return
	need java default-jre-headless
	need mvn maven
	mkdir -p "$CACHE" || die "cannot write the cache folder $CACHE (set SLUICE_CACHE)"
	exec 9>"$CACHE/kafka.lock"
	flock 9
	if [ ! -e "$LIB/.complete" ]; then
		echo "$NAME: fetching Kafka $VERSION into $LIB (once)" >&2
		rm -rf "$LIB"
		mvn -q -B -f "$HERE/../kafka/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
			-DoutputDirectory="$LIB" >"$CACHE/kafka-fetch.log" 2>&1 ||
			die "cannot fetch Kafka $VERSION with Maven: $(grep -m1 ERROR "$CACHE/kafka-fetch.log"); see $CACHE/kafka-fetch.log"
		ls "$LIB"/kafka_2.13-*.jar >/dev/null 2>&1 || die "Maven gave no broker; see $CACHE/kafka-fetch.log"
		touch "$LIB/.complete"
	fi
	exec 9>&-
}

configure() {
	local port ctl
	port=${SLUICE_KAFKA_PORT:-$(free_port)}
	ctl=$(free_port)
	while [ "$ctl" = "$port" ]; do ctl=$(free_port); done
	cat >"$DIR/server.properties" <<EOF
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$ctl
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$ctl
advertised.listeners=PLAINTEXT://127.0.0.1:$port
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$DIR/kafka-data
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
auto.create.topics.enable=false
broker.session.timeout.ms=1500
broker.heartbeat.interval.ms=300
EOF
	echo "$port" >"$DIR/kafka.port"
	java -cp "$LIB/*" kafka.tools.StorageTool random-uuid 2>/dev/null | tail -1 >"$DIR/kafka.id"
	java -cp "$LIB/*" kafka.tools.StorageTool format -t "$(cat "$DIR/kafka.id")" -c "$DIR/server.properties" \
		>"$DIR/kafka-format.log" 2>&1 || die "formatting $DIR/kafka-data failed: $(tail -1 "$DIR/kafka-format.log")"
	touch "$DIR/kafka.formatted"
}

start() {
	local pid port n
	mkdir -p "$DIR" || die "cannot write $DIR"
	DIR=$(cd "$DIR" && pwd)
	if pid=$(pid_of "$DIR/kafka.pid" "$DIR/server.properties"); then
		cat "$DIR/kafka.env"
		return
	fi
	need java default-jre-headless
	fetch
	[ -e "$DIR/kafka.formatted" ] || configure
	port=$(cat "$DIR/kafka.port")
	wait_free "$port" 10 || die "port $port is taken by another program; stop it, or remove $DIR for a new broker"
	[ -e "$DIR/kafka.log" ] && mv "$DIR/kafka.log" "$DIR/kafka.log.old"
	# shellcheck disable=SC2086
	setsid nohup java -Xmx${SLUICE_KAFKA_HEAP:-512m} ${SLUICE_KAFKA_JAVA:-} -cp "$LIB/*" kafka.Kafka "$DIR/server.properties" \
		>"$DIR/kafka.log" 2>&1 </dev/null &
	pid=$!
	echo "$pid" >"$DIR/kafka.pid"
	n=1200
	until grep -q 'Kafka Server started' "$DIR/kafka.log" 2>/dev/null && listening "$port"; do
		kill -0 "$pid" 2>/dev/null ||
			die "the broker ended: $(grep -m1 -iE 'error|exception' "$DIR/kafka.log"); see $DIR/kafka.log"
		n=$((n - 1))
		[ $n -gt 0 ] || die "the broker is not ready after 60 s; see $DIR/kafka.log"
		sleep 0.05
	done
	echo "SLUICE_KAFKA_BROKERS=127.0.0.1:$port" >"$DIR/kafka.env"
	cat "$DIR/kafka.env"
}

stop() {
	local pid
	DIR=$(cd "$DIR" 2>/dev/null && pwd) || return 0
	pid=$(pid_of "$DIR/kafka.pid" "$DIR/server.properties") || return 0
	kill -TERM "$pid"
	if ! wait_gone "$pid" 20; then
		kill -KILL "$pid"
		wait_gone "$pid" 5 || die "process $pid does not end"
	fi
	rm -f "$DIR/kafka.pid"
}

kill9() {
	local pid
	DIR=$(cd "$DIR" 2>/dev/null && pwd) || die "no broker in $DIR"
	pid=$(pid_of "$DIR/kafka.pid" "$DIR/server.properties") || die "no broker is running in $DIR"
	kill -KILL "$pid"
	wait_gone "$pid" 5
	rm -f "$DIR/kafka.pid"
}

status() {
	local pid
	DIR=$(cd "$DIR" 2>/dev/null && pwd) || { echo stopped; exit 1; }
	if pid=$(pid_of "$DIR/kafka.pid" "$DIR/server.properties"); then
		echo "running $pid 127.0.0.1:$(cat "$DIR/kafka.port")"
	else
		echo stopped
		exit 1
	fi
}

usage() {
	sed -n '2,9p' "${BASH_SOURCE[0]}" | sed 's/^# \{0,1\}//' >&2
	exit 2
}

[ $# -ge 1 ] || usage
[ "$1" = fetch ] && { fetch; exit 0; }
[ $# -eq 2 ] || usage
DIR=$2
case $1 in
start | stop | kill9 | status) "$1" ;;
*) usage ;;
esac
