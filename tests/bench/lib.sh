# What run.sh, soak.sh, compare.sh and profile.sh share: a Kafka, a Redis and the services of their own, and what these use up.
# Sourced, not run. A caller sets -eu, ROOT and then calls bench_begin.
#   SLUICE_BUILD=FOLDER   a finished build instead of the release preset        KEEP=1   logs and data stay

bench_end() {
	local code=$? pid
	trap - EXIT INT TERM
	for pid in $CHILDREN; do kill "$pid" 2>/dev/null || true; done
	deploy/local/services.sh stop "$DIR" || true
	deploy/local/kafka.sh stop "$DIR" || true
	deploy/local/redis.sh stop "$DIR" || true
	if [ -n "${KEEP:-}" ]; then echo "kept: $DIR"; else rm -rf "$DIR"; fi
	exit $code
}

bench_begin() {
	cd "$ROOT"
	DIR=$(mktemp -d)
	CHILDREN=""
	trap bench_end EXIT
	trap 'exit 130' INT TERM
	deploy/packages.sh build run
	if [ -z "${SLUICE_BUILD:-}" ]; then
		[ -f build/release/build.ninja ] || cmake --preset release >/dev/null
		cmake --build --preset release | tail -1
	fi
	export SLUICE_BIN=${SLUICE_BUILD:-$ROOT/build/release}/bin
	local program
	for program in load limit soak; do
		gcc -O2 -D_GNU_SOURCE -o "$DIR/$program" tests/bench/$program.c tests/bench/bench.c -lrdkafka -lhiredis -lpthread
	done
	gcc -O2 -D_GNU_SOURCE -o "$DIR/stub" tests/bench/stub.c -lmicrohttpd
	deploy/local/kafka.sh start "$DIR" >/dev/null
	deploy/local/redis.sh start "$DIR" >/dev/null
	. "$DIR/kafka.env"
	. "$DIR/redis.env"
	export SLUICE_KAFKA_BROKERS SLUICE_REDIS_URL SLUICE_EXECUTOR_EGRESS_LOOPBACK=true
	export SLUICE_PARTITIONS_INSTANCES=${PARTITIONS:-8} SLUICE_PARTITIONS_EVENTS=4 SLUICE_PARTITIONS_LIFECYCLE=4
	export SLUICE_PARTITIONS_ACTIONS=8 SLUICE_PARTITIONS_TIMERS=4
	"$SLUICE_BIN/sluice" topics create >/dev/null
}

# Stub service: port and, if it is to be slow, milliseconds.
bench_stub() {
	"$DIR/stub" "$@" &
	CHILDREN="$CHILDREN $!"
}

services() { deploy/local/services.sh "$1" "$DIR" "${@:2}"; }

# Deploys a workflow of this folder with the stub's port filled in.
deploy() {
	local file="$DIR/$1.sw.yaml"
	sed "s/127.0.0.1:8097/127.0.0.1:${STUB_PORT:-8097}/" "tests/bench/workflows/$1.sw.yaml" >"$file"
	"$SLUICE_BIN/sluice" deploy "$file" >/dev/null
}
undeploy() { "$SLUICE_BIN/sluice" undeploy "bench-$1" >/dev/null; }

free_port() { (
	NAME=bench
	. deploy/local/lib.sh
	free_port
); }

pid_of() { # process of redis, kafka, coordinator-1, ...
	cat "$DIR/$1.pid"
}
cpu() { # seconds of user and system time of a process
	awk -v hz="$(getconf CLK_TCK)" '{sub(/.*\) /, ""); print ($12 + $13) / hz}' "/proc/$(pid_of "$1")/stat"
}
rss() { awk '/VmRSS/ {print int($2 / 1024)}' "/proc/$(pid_of "$1")/status"; }
peak() { awk '/VmHWM/ {print int($2 / 1024)}' "/proc/$(pid_of "$1")/status"; }
peak_reset() { echo 5 >"/proc/$(pid_of "$1")/clear_refs" 2>/dev/null || true; }
redis_mb() { redis-cli -p "$(cat "$DIR/redis.port")" info memory | awk -F: '/^used_memory:/ {print int($2 / 1048576)}'; }
div() { awk -v a="$1" -v b="$2" -v f="${3:-%.2f}" 'BEGIN {if (b + 0 == 0) print "-"; else printf f "\n", a / b}'; }
