"""kill -9, ten times at random moments, of each part of a running system under steady events, and then of everything at once; oracle.py
judges what came of 200 mixed instances each time. SLUICE_SEED repeats the moments of a run."""
import os
import random
import re
import shutil
import signal
import tempfile
import threading
import time

import pytest
from confluent_kafka import KafkaException

from checks import settled
from killing import call, definition, judge, workflows
from support import KEEP, Server, World, wait_for

SEED = os.environ.get("SLUICE_SEED") or str(random.randrange(1, 1 << 30))
RUNS = 200
KILLS = 10
SLACK_MS = 2000  # all of it starts again and again
WORKFLOWS = dict(workflows("slow", "PT3S", "PT2S"), **{
    # what is applied twice stands twice in the list, or makes a call too many
    "looper": definition("looper", "Call", """
  - name: Call
    type: operation
    actions:
      - """ + call("mirror", "loop", "i: '${ .n + (.got | length) }'") + """
        actionDataFilter: {results: '${ .i }', toStateData: '${ .last }'}
    stateDataFilter: {output: '${ {run: .run, n: .n, got: ((.got // []) + [.last])} }'}
    transition: Enough
  - name: Enough
    type: switch
    dataConditions: [{condition: '${ (.got | length) == 3 }', transition: Done}]
    defaultCondition: {transition: Call}
  - name: Done
    type: inject
    data: {}
    stateDataFilter: {output: '${ {run: .run, got: .got} }'}
"""),
    "retrier": definition("retrier", "Try", """
  - name: Try
    type: operation
    actions:
      - """ + call("flaky", "try", "tried: '${ 0 - .n }'") + """
        retryRef: soon
        retryableErrors: [busy]
        actionDataFilter: {results: '${ {tried: .tried} }'}
    stateDataFilter: {output: '${ {run: .run, tried: .tried} }'}
"""),
})
KINDS = list(WORKFLOWS)


class Load(threading.Thread):
    """Publishes the events of RUNS instances over a time: starts, what they wait for (before or after), and some of it once more."""

    def __init__(self, world, rng, over_s, first=0, runs=RUNS, kinds=KINDS):
        super().__init__(daemon=True)
        self.world, self.plan, self.stopped = world, [], False
        for i in range(runs):
            at, kind, n = over_s * i / runs, kinds[i % len(kinds)], first + i // len(kinds)
            run = "%s-%d" % (kind, n)
            mine = [(at, "start", kind, run, n)]
            if kind in ("waiter", "mixed"):
                mine.append((at + rng.uniform(-0.5, 3), "go", kind, run, n))
            mine += [(entry[0] + rng.uniform(0, 4),) + entry[1:] for entry in mine if rng.random() < 0.1]
            self.plan += [entry + (rng.randrange(4),) for entry in mine]
        self.plan.sort()
        self.start()

    def run(self):
        began = time.monotonic()
        for at, what, kind, run, n, partition in self.plan:
            time.sleep(max(0, began + at - time.monotonic()))
            if self.stopped:
                return
            data = {"run": run, "n": n} if what == "start" else {"add": 1000}
            self.world.publish("kill.start." + kind if what == "start" else "kill.go", "/test", data, id="%s-%s" % (what, run), runid=run,
                               partition=partition, flush=False)
            self.world.producer.poll(0)

    def finish(self, timeout=120):
        self.join(timeout)
        assert not self.is_alive() and self.world.producer.flush(60) == 0, "Kafka did not take the events"


def now_ms():
    return int(time.time() * 1000)


def restarts(world, codes):
    """Services that ended by themselves with one of these codes: each a kill of its own for the calls that it had."""
    found = []
    for name in world.names():
        for line in world.log(name).splitlines():
            ended = re.match(r"(\S+)Z %s ended with (\d+)$" % name, line)
            if ended and int(ended.group(2)) in codes:
                at = int(time.mktime(time.strptime(ended.group(1), "%Y-%m-%dT%H:%M:%S")) - time.timezone) * 1000
                found.append({"service": name, "time_ms": at - 1000, "until_ms": at + 1000})
    return found


def completed(world):
    """So many instances have; 0 while a broker that was just started does not answer yet. None may fault."""
    try:
        assert not world.lifecycle("faulted"), world.lifecycle("faulted")[:3]
        return len(world.lifecycle("completed"))
    except KafkaException:
        return 0


def ended(world, runs=RUNS, timeout=90):
    """Until all runs have completed and everything that came of them is worked off."""
    def missing():  # their names
        done = {d.get("output", {}).get("run") for d in world.lifecycle("completed")}
        return sorted({e.event["data"]["run"] for e in world.events() if e.event.get("type", "").startswith("kill.start.")} - done)
    wait_for("ready", world.ready, 60, 0.2)
    try:
        wait_for("%d runs ended" % runs, lambda: completed(world) >= runs, timeout, 0.5)
    except AssertionError as error:
        raise AssertionError("%s; missing: %s" % (error, missing()[:20])) from None
    settled(world)


class Parts:
    """Kafka and Redis of these tests alone."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="sluice-e2e-series-")
        self.kafka = Server("kafka", os.path.join(self.folder, "kafka"))
        self.redis = Server("redis", os.path.join(self.folder, "redis"))
        self.kafka.env["SLUICE_KAFKA_JAVA"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # starts sooner
        self.brokers, self.url = self.kafka.start(), self.redis.start()

    def close(self):
        self.kafka.stop()
        self.redis.stop()
        if not KEEP:
            shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    def pid(server):
        with open(os.path.join(server.folder, server.kind + ".pid"), encoding="ascii") as text:
            return int(text.read())


def gone(pid):
    """Ended, though perhaps nobody has asked for its exit code yet."""
    try:
        with open("/proc/%d/cmdline" % pid, "rb") as text:
            return not text.read()
    except OSError:
        return True


@pytest.fixture(scope="module")
def parts():
    made = Parts()
    yield made
    made.close()


def world_of(parts, name, **settings):
    # an event may come long before its start when what is between them is away
    world = World(name, kafka=parts.brokers, redis_url=parts.url, stub_ends=True, correlation_early_window_ms=600000, **settings)
    try:
        world.endings |= {137, 1}  # 1: what Kafka forgot while it was away (fenced) is started again
        world.start()
        world.deploy(*WORKFLOWS.values())
    except BaseException:
        world.stop()
        raise
    return world


def kill_service(world, rng, part):
    name = rng.choice(world.names(part))
    wait_for("%s runs" % name, lambda: world.pid(name) and not gone(world.pid(name)), 30)
    world.kill(name)
    return {"service": name, "time_ms": now_ms()}


def kill_server(parts, rng, kind):
    server = getattr(parts, kind)
    kill = {"service": kind, "time_ms": now_ms()}
    server.run("kill9")
    time.sleep(rng.uniform(0, 0.5))
    server.start()
    kill["until_ms"] = now_ms() + (7000 if kind == "kafka" else 0)  # members that Kafka counts out meanwhile drop their calls
    return kill


def kill_all(world, parts, rng):
    servers = [parts.kafka, parts.redis]
    pids = [pid for pid in world.pids().values() if pid] + [parts.pid(server) for server in servers]
    kill = {"service": "all", "time_ms": now_ms()}
    for pid in rng.sample(pids, len(pids)):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # just starting again
    for server in servers:
        wait_for("%s is gone" % server.kind, lambda pid=parts.pid(server): gone(pid), 20)
    starts = [threading.Thread(target=server.start) for server in rng.sample(servers, 2)]
    for start in starts:
        start.start()
        time.sleep(rng.uniform(0, 0.5))
    for start in starts:
        start.join(130)
    kill["until_ms"] = now_ms() + 7000
    return kill


# victim: seconds between kills, seconds that the events take
VICTIMS = {"coordinator": (0.5, 2, 14), "executor": (0.5, 2, 14), "timer": (0.5, 2, 14), "redis": (0.5, 2, 14), "kafka": (0.3, 3, 45),
           "all": (0.5, 4, 55)}


@pytest.mark.parametrize("victim", VICTIMS)
def test_ten_kills_lose_nothing_and_double_nothing(parts, victim):
    rng = random.Random("%s-%s" % (SEED, victim))
    print("SLUICE_SEED=%s" % SEED)
    least, most, over_s = VICTIMS[victim]
    # a slow machine must not look like a dead member where Kafka stays
    world = world_of(parts, "series-" + victim, group_session_timeout_ms=6000 if victim in ("kafka", "all") else 30000)
    try:
        load, kills = Load(world, rng, over_s), []
        for _ in range(KILLS):
            time.sleep(rng.uniform(least, most))
            if victim in ("redis", "kafka"):
                kills.append(kill_server(parts, rng, victim))
            elif victim == "all":
                kills.append(kill_all(world, parts, rng))
            else:
                kills.append(kill_service(world, rng, victim))
        assert len(kills) == KILLS
        load.finish()
        ended(world)
        figures = judge(world, kills + restarts(world, (1,)), RUNS, SLACK_MS)
        if victim in ("coordinator", "timer", "redis"):  # who calls was not killed, and remembers
            assert figures.get("repeated calls", 0) == 0, figures
    finally:
        world.stop()
