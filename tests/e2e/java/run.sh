#!/usr/bin/env bash
# Runs Client.java, the Java client of the CloudEvents project. Its jars come from Maven Central once and are kept, with the compiled
# class, in ${SLUICE_CACHE:-$HOME/.cache/sluice}. The compiler is a jar too (ecj): a Java 17 runtime is enough.
#   run.sh publish BROKERS TOPIC structured|binary    events from standard input
#   run.sh consume BROKERS TOPIC
set -eu
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CACHE=${SLUICE_CACHE:-$HOME/.cache/sluice}
MARK=$(cat "$HERE/pom.xml" "$HERE/Client.java" | sha256sum | cut -c 1-16)
LIB=$CACHE/java-client-$MARK
die() { echo "tests/e2e/java: $*" >&2; exit 1; }
need() { command -v "$1" >/dev/null 2>&1 || die "'$1' is not installed; on Debian: apt-get install $2"; }
need java default-jre-headless
if [ ! -e "$LIB/.complete" ]; then
	need mvn maven
	mkdir -p "$CACHE"
	exec 9>"$CACHE/java-client.lock"
	flock 9
	if [ ! -e "$LIB/.complete" ]; then
		echo "tests/e2e/java: making $LIB (once)" >&2
		rm -rf "$CACHE"/java-client-????????????????
		mkdir -p "$LIB"
		mvn -q -B -f "$HERE/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$LIB" \
			>"$CACHE/java-client.log" 2>&1 || die "cannot fetch the jars with Maven: $(grep -m1 ERROR "$CACHE/java-client.log")"
		java -jar "$LIB"/ecj-*.jar -17 -proc:none -nowarn -cp "$(printf "%s:" "$LIB"/*.jar)" -d "$LIB" "$HERE/Client.java" >>"$CACHE/java-client.log" 2>&1 ||
			die "Client.java does not compile; see $CACHE/java-client.log"
		touch "$LIB/.complete"
	fi
	exec 9>&-
fi
exec java -Xmx128m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp "$LIB:$LIB/*" Client "$@"
