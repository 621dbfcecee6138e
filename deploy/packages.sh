#!/usr/bin/env bash
# Installs the Debian packages that Sluice needs, those that are missing only. Arguments: build (default), test, run.
set -eu
build="gcc cmake ninja-build pkg-config librdkafka-dev libhiredis-dev libuv1-dev libavro-dev libjansson-dev libjq-dev libonig-dev
	libcurl4-openssl-dev libfyaml-dev libmicrohttpd-dev uuid-dev libssl-dev libpcre2-dev libjemalloc-dev"
run="redis-server kcat default-jre-headless maven python3 procps jq"
test="libcriterion-dev clang clang-tidy libclang-rt-dev python3-venv"
want=""
for part in "${@:-build}"; do
	case $part in
	build) want="$want $build" ;;
	run) want="$want $run" ;;
	test) want="$want $test" ;;
	*) echo "packages.sh: unknown part '$part' (build, run, test)" >&2; exit 2 ;;
	esac
done
missing=""
for package in $want; do
	case $package in
	# what other ways of installing provide just as well
	gcc | cmake | clang | maven | python3 | jq | kcat) command -v "${package/maven/mvn}" >/dev/null && continue ;;
	default-jre-headless) command -v java >/dev/null && continue ;;
	python3-venv) python3 -c 'import ensurepip, venv' 2>/dev/null && continue ;;
	libclang-rt-dev) ls "$(clang -print-runtime-dir 2>/dev/null)"/libclang_rt.fuzzer* >/dev/null 2>&1 && continue ;;
	ninja-build) command -v ninja >/dev/null && continue ;;
	esac
	dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null; then
	echo "packages.sh: not a Debian system; install what these packages hold:$missing" >&2
	exit 1
fi
sudo=""
[ "$(id -u)" = 0 ] || sudo=sudo
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
if ! { $sudo apt-get update -qq && $sudo apt-get install -y -qq --no-install-recommends $missing; } >"$log" 2>&1; then
	tail -20 "$log" >&2
	echo "packages.sh: apt-get failed; see above" >&2
	exit 1
fi
rm -f "$log"
# Debian starts a Redis of its own; ours has its own port and settings
case $missing in *redis-server*) $sudo service redis-server stop >/dev/null 2>&1 || true ;; esac
