#!/usr/bin/env bash
# Builds the images and runs the compose stack for real: three executors, the order example, a service killed, the data
# after a restart, the scenario suite inside the image; then takes everything down.
#   deploy/docker/run.sh           prints seconds per part, ends with "N passed, N failed"
#   deploy/docker/run.sh --unit    also the unit tests against the image's libraries
#   deploy/docker/run.sh --keep    leaves the stack (and an engine that it started) running
# Installs the engine if there is none and starts it when none runs (as root). The base image debian:trixie-slim is made by
# debootstrap when it cannot be pulled, and kept in ${SLUICE_CACHE:-$HOME/.cache/sluice}.
set -u
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
CACHE=${SLUICE_CACHE:-$HOME/.cache/sluice}
BASE=debian:trixie-slim
UNIT=OFF KEEP=0 PASSED=0 FAILED=0 ENGINE="" UP=0
for arg in "$@"; do
	case $arg in
	--unit) UNIT=ON ;;
	--keep) KEEP=1 ;;
	*) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
	esac
done
cd "$ROOT" || exit 2
mkdir -p "$CACHE" || exit 2
WORK=$(mktemp -d) || exit 2
export COMPOSE_PROJECT_NAME=${COMPOSE_PROJECT_NAME:-sluice-check} KAFKA_PORT REDIS_PORT LC_ALL=C.UTF-8

die() {
	echo "run.sh: $*" >&2
	exit 1
}

# --- parts: each is a function; its seconds are printed, and its checks counted ---

part() { # title function [argument...]
	local began=$EPOCHREALTIME title=$1 code=0 failed=$FAILED
	printf '== %s\n' "$title"
	"${@:2}" || code=$?
	printf '   %s: %.1f s\n' "$title" "$(awk "BEGIN{print $EPOCHREALTIME - $began}")"
	[ $code = 0 ] || [ $FAILED -gt $failed ] || ok "$title" false
	return $code
}

ok() { # what command [argument...]
	if "${@:2}" >"$WORK/check.log" 2>&1; then
		PASSED=$((PASSED + 1))
		echo "   ok      $1"
	else
		FAILED=$((FAILED + 1))
		echo "   FAILED  $1"
		sed 's/^/           /' "$WORK/check.log" | tail -20
		return 1
	fi
}

within() { # seconds command [argument...]: until it succeeds
	local until=$((SECONDS + $1))
	until "${@:2}"; do
		[ $SECONDS -lt $until ] || return 1
		sleep 0.2
	done
}

finish() {
	if [ $UP = 1 ] && [ $KEEP = 0 ]; then
		part "take all down" take_down || true
	fi
	if [ -n "$ENGINE" ] && [ $KEEP = 0 ]; then
		kill "$ENGINE" 2>/dev/null
		wait "$ENGINE" 2>/dev/null
	fi
	[ -d "$WORK/root" ] && umount "$WORK/root/proc" "$WORK/root/sys" 2>/dev/null
	rm -rf --one-file-system "$WORK"
	echo "$PASSED passed, $FAILED failed"
	[ $FAILED = 0 ] && [ $PASSED -gt 0 ] && exit "$1"
	exit 1
}
trap 'finish $?' EXIT
trap 'exit 130' INT TERM

# --- engine and images ---

install_missing() { # program:package...
	local want="" program
	for program in "$@"; do
		command -v "${program%%:*}" >/dev/null || [ -x "/usr/sbin/${program%%:*}" ] || want="$want ${program##*:}"
	done
	[ -n "$want" ] || return 0
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || die "not installed:$want (as root on Debian this script installs them)"
	apt-get update -qq >/dev/null
	# Debian 12 has the client in docker.io, Debian 13 in a package of its own
	case $want in *docker-cli*) apt-cache show docker-cli >/dev/null 2>&1 || want=${want/docker-cli/docker.io} ;; esac
	echo "   installing:$want"
	# shellcheck disable=SC2086
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $want >"$WORK/apt.log" 2>&1 || {
		tail -5 "$WORK/apt.log" >&2
		die "apt-get failed"
	}
}

engine() {
	install_missing docker:docker-cli jq:jq
	docker info >/dev/null 2>&1 || install_missing dockerd:docker.io iptables:iptables
	docker compose version >/dev/null 2>&1 || install_missing docker-compose:docker-compose
	if docker compose version >/dev/null 2>&1; then COMPOSE="docker compose"; else COMPOSE=docker-compose; fi
	COMPOSE="$COMPOSE -f docker-compose.yml -f deploy/docker/example.yml"
	if ! docker info >/dev/null 2>&1; then
		[ "$(id -u)" = 0 ] || die "no Docker engine answers; start one, or run this as root"
		mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup || die "no cgroups here"
		setsid dockerd --storage-driver overlay2 >"$CACHE/dockerd.log" 2>&1 </dev/null &
		ENGINE=$!
		within 60 docker info >/dev/null 2>&1 || die "dockerd does not come up; see $CACHE/dockerd.log"
	fi
	echo "   engine $(docker version -f '{{.Server.Version}}'), $($COMPOSE version --short 2>/dev/null || $COMPOSE version | head -1)"
}

base() {
	docker image inspect $BASE >/dev/null 2>&1 && return
	[ -e "$CACHE/trixie-slim.tar.gz" ] || timeout 120 docker pull -q $BASE 2>/dev/null && return
	if [ ! -e "$CACHE/trixie-slim.tar.gz" ]; then
		[ "$(id -u)" = 0 ] || die "$BASE cannot be pulled, and debootstrap needs root"
		install_missing debootstrap:debootstrap
		debootstrap --variant=minbase trixie "$WORK/root" >"$CACHE/debootstrap.log" 2>&1 ||
			die "debootstrap failed: $(tail -1 "$CACHE/debootstrap.log")"
		rm -rf "$WORK"/root/var/cache/apt/archives/*.deb "$WORK"/root/var/lib/apt/lists/*
		tar -C "$WORK/root" --one-file-system -c . | gzip -1 >"$CACHE/trixie-slim.tar.gz.new" &&
			mv "$CACHE/trixie-slim.tar.gz.new" "$CACHE/trixie-slim.tar.gz" || die "cannot write $CACHE"
	fi
	docker import --change 'CMD ["bash"]' "$CACHE/trixie-slim.tar.gz" $BASE >/dev/null
}

# Kafka's jars come from the cache of the local broker where it has them (or can get them), else from Maven in the build.
kafka_image() {
	local lib
	if [ -e "$CACHE/kafka-4.1.1/.complete" ] || { command -v mvn >/dev/null && deploy/local/kafka.sh fetch; }; then
		lib=$CACHE/kafka-4.1.1
		mkdir -p "$WORK/kafka/lib"
		cp deploy/kafka/* "$WORK/kafka/" && cp "$lib"/*.jar "$WORK/kafka/lib/" && touch -r "$lib" "$WORK"/kafka/lib/*
		build docker build -q -t sluice-kafka "$WORK/kafka"
	else
		build $COMPOSE build kafka
	fi
}

build() {
	"$@" >"$CACHE/docker-build.log" 2>&1 && return
	tail -40 "$CACHE/docker-build.log" >&2
	return 1
}

unit_tests() {
	docker build --build-arg TESTS=ON --target build . >"$CACHE/docker-unit.log" 2>&1 || {
		grep -E 'error:|\*\*\*|tests passed|FAILED' "$CACHE/docker-unit.log"
		return 1
	}
	grep -E 'tests passed' "$CACHE/docker-unit.log"
}

image_is_right() {
	local program
	[ "$(docker run --rm --entrypoint id sluice -u)" = 10001 ] || { echo "runs as root"; return 1; }
	for program in coordinator executor timer sluice; do
		docker run --rm sluice $program --version || return 1
	done
	docker run --rm sluice --help | grep -q 'deploy' || { echo "no tool"; return 1; }
	[ "$(docker run --rm --entrypoint date sluice +%Z)" = UTC ] || { echo "not in UTC"; return 1; }
	! docker run --rm --entrypoint sh sluice -c 'command -v gcc cmake'
}

scenarios() {
	timeout 300 docker run --rm --memory 2g -v "$ROOT/tests/scenarios:/sluice/tests/scenarios:ro" -v "$ROOT/examples:/sluice/examples:ro" \
		sluice test /sluice/examples /sluice/tests/scenarios >"$WORK/scenarios.log" 2>&1
	local code=$?
	grep -v '^ok ' "$WORK/scenarios.log" | sed 's/^/   /' | tail -40
	ok "scenarios: $(tail -1 "$WORK/scenarios.log")" test $code = 0
}

# --- the stack ---

free_port() {
	local port
	for _ in $(seq 100); do
		port=$((15000 + RANDOM % 17000))
		(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo $port; return; }
	done
}

all_healthy() { # how many containers
	local ids
	ids=$($COMPOSE ps -q) || return 1
	[ "$(docker inspect -f '{{if .State.Health}}{{.State.Health.Status}}{{end}}' $ids | grep -cx healthy)" = "$1" ]
}

container() { # service [number]
	docker ps -q -f "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME" -f "label=com.docker.compose.service=$1" \
		-f "label=com.docker.compose.container-number=${2:-1}"
}

up() {
	if ! $COMPOSE up -d --no-build --scale executor=3 >"$WORK/up.log" 2>&1; then
		tail -20 "$WORK/up.log"
		return 1
	fi
	UP=1
	ok "$1" within 90 all_healthy 8 || { $COMPOSE ps; $COMPOSE logs --tail=15; return 1; }
	COORDINATOR=$(container coordinator)
}

sluice() { docker exec "$COORDINATOR" sluice "$@"; }
kcat() { docker exec -i "$(container shop)" kcat -b kafka:9092 "$@"; }

only_loopback() {
	docker ps -f "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME" --format '{{.Ports}}' | tr ',' '\n' | grep -e '->' |
		grep -v '127\.0\.0\.1:[0-9]*->' && return 1
	(exec 3<>"/dev/tcp/127.0.0.1/$KAFKA_PORT") && (exec 3<>"/dev/tcp/127.0.0.1/$REDIS_PORT")
}

redis_is_safe() {
	local got
	got=$(docker exec "$(container redis)" sh -c 'for s in appendonly appendfsync maxmemory-policy; do redis-cli config get $s; done' | paste -sd' ')
	echo "$got"
	[ "$got" = "appendonly yes appendfsync always maxmemory-policy noeviction" ]
}

instances() { # status: their ids
	sluice list --workflow order --status "$1" --limit 1000 --output json | jq -r '.[].id'
}

count_is() { # status number
	[ "$(instances "$1" | wc -l)" = "$2" ]
}

event() { # type source order data: one structured CloudEvent in a line
	jq -nc --arg type "$1" --arg source "$2" --arg order "$3" --argjson data "$4" \
		'{specversion: "1.0", id: ($type + "-" + $order), type: $type, source: $source, orderid: $order, datacontenttype: "application/json", data: $data}'
}

publish() { # type source from to data: a record for each order, published by the stock client
	local order
	for order in $(seq "$3" "$4"); do event "$1" "$2" "$order" "$5"; done |
		kcat -P -t sluice.events -H content-type=application/cloudevents+json
}

outputs_are_right() { # number
	local id n=0 want='{"order":{"article":"lamp","count":3},"reservation":{"price":20,"reserved":3},"payment":{"status":"settled","amount":60}}'
	for id in $(instances completed); do
		sluice show "$id" --output json | jq -e --argjson want "$want" \
			'(.output | del(.payment.request)) == $want and (.output.payment.request | startswith("P-"))' >/dev/null || {
			sluice show "$id" --output json
			return 1
		}
		n=$((n + 1))
	done
	[ $n = "$1" ]
}

announced() { # number: events order.done that the workflows published
	local n
	n=$(kcat -C -t sluice.events -e -q | jq -c 'select(.type == "order.done" and .data == {article: "lamp", paid: 60}) | .orderid' | sort -u | wc -l)
	echo "$n events order.done"
	[ "$n" = "$1" ]
}

executors_shared() {
	local i calls total=0 busy=0
	for i in 1 2 3; do
		calls=$(docker exec "$(container executor $i)" bash -c 'exec 3<>/dev/tcp/127.0.0.1/8080; printf "GET /metrics HTTP/1.0\r\n\r\n" >&3; cat <&3' |
			awk '/^sluice_calls_total{.*result="ok"/ { n += $2 } END { print n + 0 }')
		echo "executor $i: $calls calls"
		total=$((total + calls))
		[ "$calls" -gt 0 ] && busy=$((busy + 1))
	done
	[ $busy -ge 2 ] && [ $total -ge "$1" ]
}

order_example() {
	sed 's#http://127\.0\.0\.1:8089/#http://shop:8089/#' examples/order/order.sw.yaml >"$WORK/order.sw.yaml"
	ok "the order example is deployed" docker exec -i "$COORDINATOR" bash -c \
		'cat >/tmp/order.sw.yaml && sluice deploy /tmp/order.sw.yaml' <"$WORK/order.sw.yaml" || return 1
	publish order.placed shop 1 30 '{"article":"lamp","count":3}'
	ok "30 orders placed with kcat: each starts and waits for its payment" within 60 count_is waiting 30
	publish payment.settled bank 1 29 '{"status":"settled","amount":60}'
	ok "an event published with the tool" sluice publish --type payment.settled --source bank --id payment.settled-30 \
		orderid=30 --data '{"status":"settled","amount":60}'
	ok "all are completed after their payments" within 60 count_is completed 30
	ok "each with the right output" outputs_are_right 30
	ok "each announced with order.done" announced 30
	ok "the executors shared the calls" executors_shared 60
}

back_again() { # container
	[ "$(docker inspect -f '{{.RestartCount}} {{.State.Health.Status}}' "$1")" = "1 healthy" ]
}

kill_one_each() {
	local service id
	for service in coordinator executor timer; do
		id=$(container $service)
		# from outside, because what `docker kill` ends counts as stopped on purpose
		docker run --rm --pid host --user 0 --entrypoint bash sluice -c "kill -KILL $(docker inspect -f '{{.State.Pid}}' "$id")" ||
			return 1
		ok "$service is killed and started again" within 60 back_again "$id"
	done
	publish order.placed shop 31 40 '{"article":"lamp","count":3}'
	publish payment.settled bank 31 40 '{"status":"settled","amount":60}'
	ok "ten more orders are completed" within 60 count_is completed 40
}

stopped_cleanly() {
	local ids
	ids=$(docker ps -aq -f "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME")
	docker inspect -f '{{index .Config.Labels "com.docker.compose.service"}} {{.State.ExitCode}}' $ids | tee "$WORK/exits" |
		grep -E '^(coordinator|executor|timer|topics)' | grep -v ' 0$' && return 1
	grep -c . "$WORK/exits"
}

again_with_data() {
	$COMPOSE stop >/dev/null 2>&1
	ok "SIGTERM ends every service with exit 0" stopped_cleanly
	$COMPOSE down >/dev/null 2>&1
	up "up again with the volumes of before" || return 1
	ok "the 40 instances are still there" within 30 count_is completed 40
	publish order.placed shop 41 41 '{"article":"lamp","count":3}'
	publish payment.settled bank 41 41 '{"status":"settled","amount":60}'
	ok "and another order is completed" within 60 count_is completed 41
}

nothing_left() {
	local label="label=com.docker.compose.project=$COMPOSE_PROJECT_NAME" left
	left=$(docker ps -aq -f "$label"; docker volume ls -q -f "$label"; docker network ls -q -f "$label")
	[ -z "$left" ] || { echo "$left"; return 1; }
}

take_down() {
	UP=0
	[ $FAILED = 0 ] || { $COMPOSE logs --no-color >"$CACHE/docker-stack.log" 2>&1; echo "   logs of the stack: $CACHE/docker-stack.log"; }
	$COMPOSE down -v --remove-orphans >/dev/null 2>&1
	ok "containers, volumes and network are gone" nothing_left
}

part "engine" engine || exit 1
part "base image" base || exit 1
part "image sluice" build $COMPOSE build topics || exit 1
part "images of Kafka, Redis and the example" eval 'kafka_image && build $COMPOSE build redis shop' || exit 1
ok "one image, four programs, not root, UTC, no compiler" image_is_right
[ $UNIT = OFF ] || part "unit tests in the build stage" ok "unit tests" unit_tests
part "scenarios inside the image" scenarios
KAFKA_PORT=$(free_port)
REDIS_PORT=$KAFKA_PORT
while [ "$REDIS_PORT" = "$KAFKA_PORT" ]; do REDIS_PORT=$(free_port); done
UP=1
part "stack with three executors" up "kafka, redis, shop and five services are healthy" || exit 1
ok "ports are published on loopback only" only_loopback
ok "Redis keeps every commit and evicts nothing" redis_is_safe
part "order example through it" order_example
part "kill -9 of each service" kill_one_each
part "stop, and up again" again_with_data
