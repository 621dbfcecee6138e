# What kafka.sh and redis.sh share: ports, process ids, waiting. Sourced, not run.

die() {
	echo "$NAME: $*" >&2
	exit 1
}

need() {
	command -v "$1" >/dev/null 2>&1 || die "'$1' is not installed; on Debian: apt-get install $2"
}

# A port on loopback below the ephemeral range that nobody listens on.
free_port() {
	local port tries=0
	while [ $tries -lt 200 ]; do
		port=$((15000 + (RANDOM * 32768 + RANDOM) % 17000))
		if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
			echo "$port"
			return
		fi
		tries=$((tries + 1))
	done
	die "no free port found on 127.0.0.1"
}

listening() {
	(exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# Waits until nobody listens there any more: threads of a process that was just killed may hold its sockets a little longer than it has
# a command line. $2: seconds.
wait_free() {
	local n=$(($2 * 20))
	while listening "$1"; do
		n=$((n - 1))
		[ $n -gt 0 ] || return 1
		sleep 0.05
	done
}

# The running server's process id, or nothing. $1: pid file, $2: text that its command line contains.
pid_of() {
	local pid
	[ -s "$1" ] || return 1
	pid=$(cat "$1")
	[ -r "/proc/$pid/cmdline" ] || return 1
	tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | grep -qF -- "$2" || return 1
	echo "$pid"
}

# Waits until the process is gone; $2: seconds.
wait_gone() {
	local n=$(($2 * 20))
	while kill -0 "$1" 2>/dev/null && [ -r "/proc/$1/cmdline" ] && [ -n "$(tr -d '\0' <"/proc/$1/cmdline" 2>/dev/null)" ]; do
		n=$((n - 1))
		[ $n -gt 0 ] || return 1
		sleep 0.05
	done
}
