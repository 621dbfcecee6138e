#!/bin/bash
# Starts the broker of the image; formats /data the first time.
#   KAFKA_ADVERTISED  host:port that clients in the same network use (default: this host's name and 9092)
#   KAFKA_OUTSIDE     host:port that clients outside use; they come in at port 19092 (default 127.0.0.1:9092)
#   KAFKA_HEAP        default 512m
set -eu
cat >/data/server.properties <<EOF
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9093
listeners=INSIDE://0.0.0.0:9092,OUTSIDE://0.0.0.0:19092,CONTROLLER://127.0.0.1:9093
advertised.listeners=INSIDE://${KAFKA_ADVERTISED:-$(hostname):9092},OUTSIDE://${KAFKA_OUTSIDE:-127.0.0.1:9092}
controller.listener.names=CONTROLLER
inter.broker.listener.name=INSIDE
listener.security.protocol.map=INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=/data/log
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
java=(java "-Xmx${KAFKA_HEAP:-512m}" "-Dorg.slf4j.simpleLogger.defaultLogLevel=${KAFKA_LOG_LEVEL:-warn}" -cp "/opt/kafka/lib/*")
if [ ! -e /data/log/meta.properties ]; then
	id=$("${java[@]}" kafka.tools.StorageTool random-uuid 2>/dev/null | tail -1)
	"${java[@]}" kafka.tools.StorageTool format -t "$id" -c /data/server.properties
fi
exec "${java[@]}" kafka.Kafka /data/server.properties
