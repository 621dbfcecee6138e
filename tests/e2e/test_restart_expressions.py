"""Expressions that only a restart can stop, while short workflows go on: a named error within 10 s, one restart of one coordinator, and who
is in the partitions of the others does not notice."""
import threading
import time

from confluent_kafka.admin import AdminClient

from support import BIN, World, wait_for
from test_hard_budget import COMPUTE, EXIT, LONG, one_restart, restarts

WIDE = '("a" * 1000) * 1000 * 1500'  # 1.5 GB in one instruction of libjq, the last
QUICK = """
id: quick
name: quick
version: '1.0.0'
specVersion: '0.8'
start: Begin
events: [{name: Start, type: quick.start, source: /test}]
states:
  - {name: Begin, type: event, onEvents: [{eventRefs: [Start]}], transition: Add}
  - {name: Add, type: inject, data: {ok: true}, stateDataFilter: {output: '${ {n: .n, sum: (.n + 1)} }'}, end: true}
"""
# The claims, for a release build on a machine of its own.
FAULT_S, NEIGHBOURS_MS = 10, 1000
SANITIZED = 5  # what a sanitizer build on a busy machine may take of it


class Stream(threading.Thread):
    """A short workflow every few milliseconds, event partition after event partition."""

    def __init__(self, world, every_s, first):
        super().__init__(daemon=True)
        self.world, self.every_s, self.going, self.first, self.next = world, every_s, True, first, first
        self.start()

    def run(self):
        while self.going:
            self.world.publish("quick.start", "/test", {"n": self.next}, id="quick-%d" % self.next, partition=self.next % 4, flush=False)
            self.world.producer.poll(0)
            self.next += 1
            time.sleep(self.every_s)

    def finish(self):
        self.going = False
        self.join()
        assert self.world.producer.flush(60) == 0
        return range(self.first, self.next)


def owners(world):
    """(topic, partition) -> the coordinator that has it."""
    admin = AdminClient({"bootstrap.servers": world.kafka, "log_level": 0})
    found = {}
    for kind in ("own", "route"):
        group = world.prefix + "coordinator-" + kind
        described = admin.describe_consumer_groups([group])[group].result(20)
        for member in described.members:
            name = "coordinator-" + member.group_instance_id.rsplit("-", 1)[-1]
            for place in member.assignment.topic_partitions:
                found[place.topic, place.partition] = name
    return found


def murmur2(key):
    """As every Kafka client hashes keys."""
    h, m, mask = 0x9747b28c ^ len(key), 0x5bd1e995, 0xffffffff
    for i in range(0, len(key) - len(key) % 4, 4):
        k = int.from_bytes(key[i:i + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    rest = key[len(key) - len(key) % 4:]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return (h ^ h >> 15) & 0x7fffffff


def victim(world, where, kind):
    """The name of an instance that lives in the coordinator which routes fewer of our events."""
    routers = [name for (topic, _), name in where.items() if topic == world.topics["events"]]
    spared = max(world.names("coordinator"), key=routers.count)
    names = ("bad-%s-%d" % (kind, n) for n in range(1000))
    return next(name for name in names if where[world.topics["instances"], murmur2(b"default~" + name.encode()) % 8] != spared)


def latencies(world, numbers):
    """Per workflow: where its event was routed, where it ran, and the milliseconds from its event to its end, by the times in the log."""
    ended, started = {}, {}

    def all_ended():
        for m in world.read("lifecycle"):
            event = m.event
            output = event["data"].get("output", {})
            if event["type"].endswith("workflow.completed.v1") and output.get("n") in numbers:
                ended[output["n"]] = (event["subject"].split(".")[0], m.time_ms)
                assert output["sum"] == output["n"] + 1
        return len(ended) >= len(numbers)

    wait_for("%d short workflows" % len(numbers), all_ended, 60, 0.5)
    for m in world.events("quick.start"):
        started.setdefault(m.event["data"]["n"], (m.partition, m.time_ms))
    homes = {m.key.decode().split("~", 1)[1].split(".")[0]: m.partition for m in world.read("instances") if m.key}
    return [(started[n][0], homes[home], at - started[n][1]) for n, (home, at) in ended.items()]


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))] if values else 0


def test_who_is_elsewhere_does_not_notice():
    sanitized = b"__asan_init" in (BIN / "sluice-coordinator").read_bytes()
    bound = NEIGHBOURS_MS * (SANITIZED if sanitized else 1)
    world = World("elsewhere", executors=1, timers=1, expr_memory_max="512MiB")  # sanitizers hold on to what is freed
    world.endings.add(EXIT)
    try:
        world.start()
        world.deploy(QUICK, COMPUTE.format(name="long", expression=LONG), COMPUTE.format(name="wide", expression=WIDE))
        world.publish("quick.start", "/test", {"n": -1})  # plans are compiled, connections warm
        world.wait_ended("quick", 1)
        first = 0
        for kind, words in (("wide", "more than 512 MiB of memory"), ("long", "more than 2000 ms")):
            where, before, pids = owners(world), restarts(world), world.pids()
            bad, stream = victim(world, where, kind), Stream(world, 0.02, first)
            time.sleep(1)
            since = time.monotonic()
            world.ok("start", kind, "--id", bad)
            shown = world.wait_status(bad, "faulted", 60)
            took = time.monotonic() - since
            assert took < (FAULT_S * 3 if sanitized else FAULT_S), "%.1f s" % took
            assert shown["error"]["title"] == "expression exceeded its hard budget", shown
            wait_for("all ready", world.ready, 30)
            numbers = stream.finish()
            first = numbers.stop
            one_restart(world, before, pids)
            struck = next(name for name, count in restarts(world).items() if count != before[name])
            assert words in world.log(struck), world.log(struck)[-1000:]
            judge(world, numbers, kind, where, struck, took, bound)
    finally:
        world.stop()


def judge(world, numbers, kind, where, struck, took, bound):
    here, elsewhere = [], []
    for routed, ran, took_ms in latencies(world, numbers):
        places = {where[world.topics["events"], routed], where[world.topics["instances"], ran]}
        (here if struck in places else elsewhere).append(took_ms)
    print("%s: fault told after %.1f s; %d short workflows elsewhere: p99 %d ms, longest %d ms; %d in the struck process: longest %d ms" % (
        kind, took, len(elsewhere), percentile(elsewhere, 0.99), max(elsewhere, default=0), len(here), max(here, default=0)))
    assert len(elsewhere) > 20, len(elsewhere)
    assert percentile(elsewhere, 0.99) < bound, sorted(elsewhere)[-20:]
    assert here and max(here) < 15000, sorted(here)[-20:]
