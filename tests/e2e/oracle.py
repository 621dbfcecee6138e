#!/usr/bin/env python3
"""Judges a run of the workflows of kills.py by what others can see: the stub's log, the event and lifecycle topics, Redis.

    oracle.py --kafka H:P --events TOPIC --lifecycle TOPIC --stub-log FILE --kills FILE --redis URL --redis-prefix P [--slack-ms N]

The events `kill.start` say which runs there are; all else must follow from them. The kills are a list of objects: time_ms and, where
what was killed stayed away, until_ms. Prints one JSON object with `problems` (empty when all is right) and figures; exit 1 when there
are problems, 2 when it could not judge. Shares no code with the tests. Every wait has its bound, and so has the whole (WHOLE_S).
"""
import argparse
import collections
import faulthandler
import json
import os
import sys
import time

import redis
from cloudevents.core.bindings.kafka import KafkaMessage, from_kafka
from cloudevents.core.formats.json import JSONFormat
from confluent_kafka import Consumer, TopicPartition

SLACK_MS = 300  # between an answer on the wire and its result in Kafka
READ_S = 20  # for one topic
WHOLE_S = 80


def cannot(text, *args):
    print(text % args, file=sys.stderr, flush=True)
    os._exit(2)  # whatever a library's thread still waits for


def read_partition(consumer, name, partition, until):
    found = []
    at, high = consumer.get_watermark_offsets(TopicPartition(name, partition), 10)
    if at < high:
        consumer.assign([TopicPartition(name, partition, at)])
    while at < high:
        msg = consumer.poll(1)
        if time.monotonic() > until:
            cannot("%s/%d cannot be read in time: at %d of %d", name, partition, at, high)
        if msg is None or msg.partition() != partition:
            continue
        if msg.error():
            cannot("%s/%d cannot be read: %s", name, partition, msg.error())
        at = msg.offset() + 1
        event = from_kafka(KafkaMessage(dict(msg.headers() or []), msg.key(), msg.value()), JSONFormat())
        found.append({"id": event.get_id(), "type": event.get_type(), "subject": event.get_subject(), "data": event.get_data()})
    return found


def read_topic(kafka, name):
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "oracle", "enable.auto.commit": False, "log_level": 0, "fetch.wait.max.ms": 20})
    found, until = [], time.monotonic() + READ_S
    for partition in consumer.list_topics(name, 10).topics[name].partitions:
        found += read_partition(consumer, name, partition, until)
    consumer.close()
    return found


# What each kind of run must end with, and the calls it makes: (part, arguments that matter).
def expected(kind, run, n):
    if kind == "waiter":
        return {"run": run, "sum": n + 1000}, []
    if kind == "caller":
        return {"run": run, "double": 2 * n}, ["double"]
    if kind == "sleeper":
        return {"run": run, "triple": 3 * n}, []
    if kind == "mixed":
        return {"run": run, "asked": n, "told": n + 1000, "squares": [{"square": i * i} for i in (n, n + 1, n + 2)]}, ["ask", "each", "each", "each"]
    if kind == "fork":
        return {"run": run, "left": {"left": n}, "right": {"right": -n}}, ["left"]
    if kind == "looper":
        return {"run": run, "got": [n, n + 1, n + 2]}, ["loop", "loop", "loop"]
    if kind == "retrier":
        return {"run": run, "tried": -n}, ["try"]
    raise SystemExit("unknown kind %s" % kind)


class Oracle:
    def __init__(self):
        self.problems = []
        self.figures = collections.Counter()

    def wrong(self, text, *args):
        self.problems.append(text % args)

    def once(self, events, what):
        """By id; a repeated id must be the same event."""
        by_id = {}
        for event in events:
            if by_id.setdefault(event["id"], event) != event:
                self.wrong("%s %s came twice with other content", what, event["id"])
        self.figures["repeated " + what] += len(events) - len(by_id)
        return list(by_id.values())

    def instances(self, lifecycle, runs):
        """Each run has one instance, which started once and completed once with the right output."""
        prefix = "io.serverlessworkflow.workflow."
        states = collections.defaultdict(list)
        of_run = collections.defaultdict(list)
        for event in self.once([e for e in lifecycle if e["type"].startswith(prefix)], "lifecycle event"):
            states[event["subject"]].append(event["type"][len(prefix):-3])
            if event["type"] == prefix + "completed.v1":
                output = event["data"]["output"]
                run = output.get("run") if isinstance(output, dict) else None
                of_run[run].append(event["subject"])
                if run not in runs:
                    self.wrong("instance %s completed with an output of no run: %s", event["subject"], output)
                elif output != runs[run][0]:
                    self.wrong("run %s: output %s, expected %s", run, output, runs[run][0])
            elif event["type"] != prefix + "started.v1":
                self.wrong("instance %s %s: %s", event["subject"], event["type"], event["data"].get("error"))
        for instance, seen in states.items():
            if sorted(seen) != ["completed", "started"]:
                self.wrong("instance %s: %s", instance, seen)
        for run in runs:
            if len(of_run[run]) != 1:
                self.wrong("run %s has %d instances that completed", run, len(of_run[run]))
        self.figures["instances"] = len(states)

    def published(self, events, runs):
        done = collections.Counter()
        for event in self.once([e for e in events if e["type"] == "kill.done"], "published event"):
            run = event["data"].get("run")
            done[run] += 1
            if run not in runs or event["data"] != runs[run][0]:
                self.wrong("published for %s: %s", run, event["data"])
        for run in runs:
            if done[run] != 1:
                self.wrong("run %s published %d different events", run, done[run])

    def calls(self, log, runs, kills, slack_ms=SLACK_MS):
        """The calls that the runs make, each once; again only what a kill cut off, under the same key."""
        by_key, ends = collections.defaultdict(list), collections.defaultdict(list)
        for entry in log:
            if entry.get("done"):
                ends[entry["key"], entry["attempt"]].append(entry["time_ms"])
            elif entry["path"].startswith("/open/"):
                continue
            elif not entry["key"]:
                self.wrong("a call without Idempotency-Key: %s", entry["path"])
            else:
                by_key[entry["key"]].append(entry)
        parts = collections.defaultdict(list)
        for key, entries in by_key.items():
            body = entries[0]["body"]
            parts[body.get("run")].append(body.get("part"))
            self.figures["calls"] += len(entries)
            for entry in entries[1:]:
                if entry["body"] != body or entry["instance"] != entries[0]["instance"]:
                    self.wrong("call %s came again differently: %s, then %s", key, entries[0], entry)
            attempts = sorted({entry["attempt"] for entry in entries})
            if attempts != [1] and (body.get("part") != "try" or attempts not in ([1, 2], [1, 2, 3])):
                self.wrong("call %s of %s: attempts %s", key, body, attempts)
            for attempt in attempts:
                self.repeated(body, [e for e in entries if e["attempt"] == attempt], ends[key, attempt], kills, slack_ms)
        for run, (_, wanted) in runs.items():
            found = parts.pop(run, [])
            if sorted(found) != sorted(wanted):
                self.wrong("run %s: calls %s, expected %s", run, found, wanted)
        for run in parts:
            self.wrong("calls of no run: %s", run)

    def repeated(self, body, entries, ends, kills, slack_ms):
        """One attempt of one call: again only after a kill between, and unfinished at the first of those."""
        key = entries[0]["key"]
        for first, again in zip(entries, entries[1:]):
            self.figures["repeated calls"] += 1
            between = [since for since, until in kills if since <= again["time_ms"] and first["time_ms"] <= until]
            ended = [t for t in ends if first["time_ms"] <= t]
            if not between:
                self.wrong("call %s of %s was repeated without a kill between", key, body)
            elif ended and ended[0] < min(between) - slack_ms:
                self.wrong("call %s of %s was repeated though it had ended %d ms before the kill", key, body, min(between) - ended[0])
        if len(entries) > 1 + len(set(kills)):
            self.wrong("call %s of %s came %d times", key, body, len(entries))

    def leftovers(self, client, prefix):
        """Nothing is active, nobody subscribed, no timer is set."""
        for key in client.scan_iter(prefix + ":*", count=1000):
            name = key.decode()[len(prefix) + 1:]
            kind = name.split(":", 1)[0]
            if kind == "x":
                for member in client.zrange(key, 0, -1):
                    status = member.decode().split("|")[0]
                    self.figures["listed"] += 1
                    if status not in ("completed", "faulted", "cancelled"):
                        self.wrong("still active: %s", member.decode())
            elif kind == "m":
                for field, value in client.hgetall(key).items():
                    if field.startswith((b"s:", b"c:", b"j:")):
                        self.wrong("left in mailbox %s: %s %s", name, field.decode(), value.decode()[:200])
            elif kind == "t":
                self.wrong("left of a timer: %s %s", name, client.type(key).decode())

    def lost(self, client, prefix):
        for key in client.scan_iter(prefix + ":p:*", count=1000):
            for field in (b"todo", b"note"):
                value = client.hget(key, field)
                if value:
                    self.wrong("%s still has a %s", key.decode(), field.decode())


def main():
    faulthandler.dump_traceback_later(WHOLE_S, exit=True)
    parser = argparse.ArgumentParser()
    for name in ("kafka", "events", "lifecycle", "stub-log", "kills", "redis", "redis-prefix"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--slack-ms", type=int, default=SLACK_MS)
    args = parser.parse_args()
    events = read_topic(args.kafka, args.events)
    runs = {}
    for event in events:
        if event["type"].startswith("kill.start."):
            run, n = event["data"]["run"], event["data"]["n"]
            runs[run] = expected(event["type"][len("kill.start."):], run, n)
    with open(args.stub_log, encoding="utf-8") as lines:
        log = [json.loads(line) for line in lines]
    with open(args.kills, encoding="utf-8") as text:
        kills = [(kill["time_ms"], kill.get("until_ms", kill["time_ms"])) for kill in json.load(text)]
    oracle = Oracle()
    oracle.figures["runs"] = len(runs)
    oracle.instances(read_topic(args.kafka, args.lifecycle), runs)
    oracle.published(events, runs)
    oracle.calls(log, runs, kills, args.slack_ms)
    client = redis.Redis.from_url(args.redis, socket_timeout=10, socket_connect_timeout=10)
    oracle.leftovers(client, args.redis_prefix)
    oracle.lost(client, args.redis_prefix)
    print(json.dumps({"problems": oracle.problems, "figures": oracle.figures}, indent=1))
    return 1 if oracle.problems else 0


if __name__ == "__main__":
    sys.exit(main())
