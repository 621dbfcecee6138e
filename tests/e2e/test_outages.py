"""What others do to Sluice: a full disk, no memory, a topic that refuses, Kafka away, topics with the wrong settings. In each case the log
and /readyz say what to do, and after the cure everything goes on as if nothing had been."""
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic, ResourceType)

from support import Server, World, free_port, wait_for
from test_life import TRIP as SHORT, committed

TRIP = SHORT.replace("actionExecTimeout: PT1M", "actionExecTimeout: PT10M")  # an outage may take minutes on a slow machine
REPEATS = 10  # calls that an outage may repeat, always with the same key
# The two events of a trip come by different partitions, which may be minutes apart after an outage.
PATIENT = {"correlation_early_window_ms": "10m"}


def settled(read):
    """What it gives when a Kafka that has just come back has its leaders again."""
    def once():
        try:
            return [read()]
        except KafkaException:
            return None
    return wait_for("the topics can be read", once, 30, 0.5)[0]


class Trips(threading.Thread):
    """Publishes the two events of one trip after the other until it is told to stop; numbers never come twice in a world."""

    def __init__(self, world, every_s=0.05):
        super().__init__(daemon=True)
        self.world, self.every_s, self.going = world, every_s, True
        self.first = self.next = getattr(world, "trips", 0)
        self.start()

    def run(self):
        while self.going:
            self.one()
            time.sleep(self.every_s)

    def one(self):
        n = self.next
        for kind in ("went", "back"):
            self.world.publish("trip." + kind, "/test", {"n": n}, id="%s-%d" % (kind, n), tripid="t%d" % n, partition=(n + (kind == "back")) % 4,
                               flush=False)
        self.world.producer.poll(0)
        self.next = self.world.trips = n + 1

    def finish(self):
        self.going = False
        self.join()
        assert self.world.producer.flush(60) == 0
        there = {m.event.get("id") for m in settled(lambda: self.world.events())}
        lost = [n for n in range(self.first, self.next) if not {"went-%d" % n, "back-%d" % n} <= there]
        assert not lost, "not in the topic, so not ours to lose: %s" % lost[:20]

    def check(self, timeout=60):
        """Each trip once, with the right output; each call once, or again with the same key."""
        world, numbers = self.world, range(self.first, self.next)

        def mine(what):
            ended = settled(lambda: world.lifecycle(what, "trip"))
            return [d for d in ended if d.get("output", {}).get("n") in numbers]
        try:
            wait_for("%d trips" % len(numbers), lambda: len(mine("completed")) >= len(numbers), timeout, 0.3)
        except AssertionError as error:
            left = [one for one in world.list(workflow="trip") if one["status"] != "completed"]
            done = {d["output"]["n"] for d in mine("completed")}
            lost = [n for n in numbers if n not in done]
            raise AssertionError("%s; without %s; instances: %s; groups: %s; why: %s" % (
                error, lost[:20], left[:10], committed(world), [[world.cli("why", "%s-%d" % (kind, n)).out for kind in ("went", "back")]
                                                                for n in lost[:3]])) from error
        ended = mine("completed")
        assert sorted(d["output"]["n"] for d in ended) == list(numbers)
        assert all(d["output"] == {"n": n, "answer": {"n": n}, "back": {"n": n}} for d in ended for n in [d["output"]["n"]])
        assert not world.lifecycle("faulted") and not world.lifecycle("cancelled") and not world.dead_letters()
        calls = [(c["body"]["n"], c["key"]) for c in world.stub.calls("/slow") if c["body"]["n"] in numbers]
        assert {n for n, _ in calls} == set(numbers) and len(set(calls)) == len(numbers), "the same key for the same call"
        assert len(calls) - len(numbers) <= REPEATS, len(calls) - len(numbers)
        print("%d trips, %d calls repeated" % (len(numbers), len(calls) - len(numbers)))


def alter(world, topic, **settings):
    """Topic settings, with '_' for '.'; None takes one back to its default."""
    entries = [ConfigEntry(name.replace("_", "."), value, incremental_operation=AlterConfigOpType.DELETE if value is None else
                           AlterConfigOpType.SET) for name, value in settings.items()]
    wanted = ConfigResource(ResourceType.TOPIC, world.topics.get(topic, topic), incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": world.kafka, "log_level": 0})
    for done in admin.incremental_alter_configs([wanted]).values():
        done.result(20)


def says(world, parts, *words, log=True):
    """/readyz of some instance of each part, and its log, hold all these words."""
    for part in parts:
        names = world.names(part)

        def told():
            return [name for name in names for status, text in [world.http(name, "/readyz")]
                    if status == 503 and all(word in text for word in words)]
        found = wait_for("%s is not ready: %s" % (part, words), told, 30, 0.1)
        if log:
            wait_for("%s logs %s" % (part, words), lambda: any(all(word in line for word in words) for name in found
                                                               for line in world.log(name).splitlines()), 30, 0.1)


def still(world, pids):
    """Nobody was started again."""
    assert world.pids() == pids, (world.pids(), pids)


class Disk(Server):
    """A Redis on a small disk: a file system of its own where one can be mounted, else a limit on the size of its files."""

    BYTES = 64 * 1024 * 1024

    def __init__(self, folder):
        super().__init__("redis", folder)
        self.data = os.path.join(self.folder, "redis-data")
        os.makedirs(self.data)
        self.mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d" % self.BYTES, "tmpfs", self.data], check=False,
                                      capture_output=True).returncode == 0

    def run(self, verb):
        # Python ignores SIGXFSZ; handed on, a write beyond the limit is an error and not the end
        subprocess.run([self.script, verb, self.folder], check=True, env=self.env, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                       timeout=120, restore_signals=False)

    def alive(self):
        return subprocess.run([self.script, "status", self.folder], check=False, capture_output=True).returncode == 0

    def fill(self):
        if self.mounted:
            with open(os.path.join(self.data, "filler"), "wb", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(65536))
                except OSError:
                    pass
            return
        with open(os.path.join(self.folder, "redis.pid"), encoding="ascii") as text:
            pid = int(text.read())
        largest = max(os.path.getsize(os.path.join(where, name)) for where, _, names in os.walk(self.data) for name in names)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))

    def make_room(self):
        if self.mounted:
            os.unlink(os.path.join(self.data, "filler"))

    def close(self):
        self.stop()
        if self.mounted:
            subprocess.run(["umount", self.data], check=False)


@pytest.fixture(scope="module")
def disk():
    folder = tempfile.mkdtemp(prefix="sluice-e2e-disk-")
    server = Disk(folder)
    try:
        server.url = server.start()
        yield server
    finally:
        server.close()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def world(disk):
    world = World("outages", 2, 1, 1, redis_url=disk.url, **PATIENT)
    world.start()
    world.deploy(TRIP)
    yield world
    world.stop()


def test_redis_with_a_full_disk(world, disk):
    pids, trips = world.pids(), Trips(world)
    time.sleep(1)
    disk.fill()
    wait_for("Redis ends itself (%s)" % ("a full disk" if disk.mounted else "a limit on its files"), lambda: not disk.alive(), 20)
    says(world, ("coordinator", "executor", "timer"), "make room", "start it again")
    time.sleep(0.5)
    disk.make_room()
    disk.start()
    wait_for("ready again", world.ready, 30)
    time.sleep(0.5)
    trips.finish()
    trips.check()
    still(world, pids)


def test_redis_out_of_memory(world):
    client, pids, trips = world.redis(), world.pids(), Trips(world)
    time.sleep(1)
    client.config_set("maxmemory", "1mb")
    says(world, ("coordinator",), "out of memory", "raise maxmemory")
    assert all(world.pid(name) for name in world.names())
    time.sleep(0.5)
    client.config_set("maxmemory", "0")
    wait_for("ready again", world.ready, 30)
    time.sleep(0.5)
    trips.finish()
    trips.check()
    still(world, pids)


def test_kafka_refuses_records(world):
    pids, trips = world.pids(), Trips(world)
    time.sleep(1)
    # too small for what is routed, for the executor's answers and for the timer
    alter(world, "instances", max_message_bytes="150")
    says(world, ("coordinator", "executor", "timer"), world.topics["instances"], "refuses records", "max.message.bytes=")
    time.sleep(2)
    alter(world, "instances", max_message_bytes=str(4 * 1024 * 1024))
    wait_for("ready again", world.ready, 30)
    trips.finish()
    trips.check()
    still(world, pids)
    for name in world.names():
        assert "for good" not in world.log(name), "given up: %s" % world.log(name)[-1000:]


def recreate(world, topic, partitions, **settings):
    """A topic made anew, by hand."""
    admin, name = AdminClient({"bootstrap.servers": world.kafka, "log_level": 0}), world.topics[topic]
    if name in admin.list_topics(timeout=10).topics:
        admin.delete_topics([name])[name].result(20)
        wait_for("%s is gone" % name, lambda: name not in admin.list_topics(timeout=10).topics, 20, 0.2)
    config = {setting.replace("_", "."): value for setting, value in settings.items()}

    def made():
        try:
            admin.create_topics([NewTopic(name, partitions, config=config)])[name].result(20)
            return True
        except Exception as error:  # the old one may still be going
            if "already exists" not in str(error) and "marked for deletion" not in str(error):
                raise
            return False
    wait_for("%s is made" % name, made, 20, 0.2)
    wait_for("%s is there" % name, lambda: name in admin.list_topics(timeout=10).topics, 20, 0.1)


def test_topics_with_the_wrong_settings_are_waited_for_and_looked_at_again():
    world = World("topics", 1, 1, 1, topic_check_ms=1000, **PATIENT)
    ours = {"max_message_bytes": str(4 * 1024 * 1024)}
    try:
        world.create_topics()
        alter(world, "timers", cleanup_policy="compact")
        alter(world, "commands", retention_ms="60000")
        alter(world, "actions", max_message_bytes="1000")
        alter(world, "events", max_message_bytes="70000")
        recreate(world, "definitions", 2, cleanup_policy="delete", **ours)
        admin = AdminClient({"bootstrap.servers": world.kafka, "log_level": 0})
        admin.delete_topics([world.topics["instances"]])[world.topics["instances"]].result(20)
        starting = world.services("start", wait=False)
        wrong = [("timers", "cleanup.policy=compact and needs delete", "--add-config cleanup.policy=delete"),
                 ("commands", "retention.ms=60000 and needs at least", "--add-config retention.ms="),
                 ("actions", "max.message.bytes=1000 and needs at least", "--add-config max.message.bytes="),
                 ("definitions", "cleanup.policy=delete and needs compact", "--add-config cleanup.policy=compact"),
                 ("definitions", "has 2 partitions and needs 1", "fixed when the topic is created"),
                 ("instances", "does not exist", "sluice topics create")]
        checked = world.cli("topics", "check")
        assert checked.code == 1, checked
        for topic, what, cure in wrong:
            assert world.topics[topic] in checked.err and what in checked.err and cure in checked.err, (topic, checked)
            says(world, ("coordinator", "executor", "timer"), world.topics[topic], what, cure)
        assert "max.message.bytes=70000" in checked.err and "kafka.batch.size" in checked.err, checked  # others' topic: warnings
        pids = world.pids()
        # one cure after the other; the last one lets everything go on
        alter(world, "timers", cleanup_policy="delete")
        alter(world, "commands", retention_ms=str(7 * 24 * 3600 * 1000))
        alter(world, "actions", **ours)
        recreate(world, "definitions", 1, cleanup_policy="compact", **ours)
        says(world, ("coordinator",), "does not exist")
        world.create_topics()
        assert starting.wait(60) == 0
        still(world, pids)
        assert world.ready() and all("kafka.batch.size" in world.log(name) for name in world.names())
        world.deploy(TRIP)
        trips = Trips(world)
        # under way
        alter(world, "commands", retention_ms="60000")
        says(world, ("coordinator", "executor", "timer"), world.topics["commands"], "retention.ms=60000")
        alter(world, "commands", retention_ms=str(7 * 24 * 3600 * 1000))
        wait_for("ready again", world.ready, 30)
        trips.finish()
        trips.check()
        still(world, pids)
    finally:
        world.stop()


def test_partitions_that_are_added_or_missing():
    """Their number decides where every instance lives: more are not used, fewer are refused."""
    world = World("grown", 1, 1, 1, **PATIENT)
    try:
        world.start()
        world.deploy(TRIP)
        assert world.redis().hgetall(world.redis_prefix + ":layout") == {b"instances": b"8"}
        waiting = range(1000, 1030)
        for n in waiting:
            world.publish("trip.went", "/test", {"n": n}, tripid="t%d" % n, flush=False)
        world.producer.flush(30)
        wait_for("waiting trips", lambda: len(world.list(workflow="trip", status="waiting")) == len(waiting), 30, 0.2)
        admin = AdminClient({"bootstrap.servers": world.kafka, "log_level": 0})
        admin.create_partitions([NewPartitions(world.topics["instances"], 13)])[world.topics["instances"]].result(20)
        wait_for("13 partitions", lambda: len(admin.list_topics(world.topics["instances"], 10).topics[world.topics["instances"]].partitions)
                 == 13, 20)
        for name in world.names():
            before = world.pid(name)
            world.kill(name, signal.SIGTERM)
            wait_for("%s again" % name, lambda: world.pid(name) not in (0, before) and world.http(name, "/readyz")[0] == 200, 30)
            assert "are spread over 8" in world.log(name), world.log(name)[-1000:]
        trips = Trips(world)
        time.sleep(1)
        trips.finish()
        trips.check()
        for n in waiting:
            world.publish("trip.back", "/test", {"n": n}, tripid="t%d" % n, flush=False)
        world.producer.flush(30)
        assert world.show(world.list(workflow="trip")[0]["id"])["workflow"] == "trip"
        world.wait_ended("trip", len(waiting) + trips.next - trips.first)
        assert {m.partition for m in world.read("instances")} <= set(range(8))
        world.services("stop")
        # a topic made anew, with fewer
        recreate(world, "instances", 4, max_message_bytes=str(4 * 1024 * 1024), message_timestamp_type="LogAppendTime",
                 retention_ms=str(7 * 24 * 3600 * 1000))
        world.services("start", wait=False)
        says(world, ("coordinator", "executor", "timer"), "has 4 partitions", "spread over 8", "partitions.instances=8")
        pids = world.pids()
        time.sleep(2)
        still(world, pids)
    finally:
        world.stop()


def test_kafka_away_for_longer_than_the_sessions():
    folder = tempfile.mkdtemp(prefix="sluice-e2e-away-")
    ports = free_port(), free_port()
    kafka, redis = Server("kafka", folder, ports[0]), Server("redis", folder, ports[1])
    world = None
    try:
        world = World("away", 2, 2, 1, kafka=kafka.start(), redis_url=redis.start(), group_session_timeout_ms=2000, **PATIENT)
        world.start()
        world.deploy(TRIP)
        pids, trips = world.pids(), Trips(world, 0.1)
        time.sleep(1.5)
        kafka.stop()
        away = time.monotonic()
        says(world, ("coordinator", "executor", "timer"), "cannot reach Kafka at " + world.kafka)
        redis.stop()
        listed = world.cli("list")
        assert listed.code == 3 and world.kafka in listed.err and world.redis_url in listed.err, listed
        redis.start()
        time.sleep(max(0, 9 - (time.monotonic() - away)))
        still(world, pids)
        kafka.start()
        wait_for("ready again", world.ready, 60)
        time.sleep(1)
        trips.finish()
        trips.check(90)
        # stopped for longer than its session, each in turn: fenced, and back under its name
        trips = Trips(world, 0.1)
        for name in world.names():
            world.kill(name, signal.SIGSTOP)
        time.sleep(4)
        for name in world.names():
            world.kill(name, signal.SIGCONT)
        wait_for("ready again", world.ready, 60)
        trips.finish()
        trips.check(90)
        still(world, pids)
    finally:
        try:
            if world:
                world.stop()
        finally:
            kafka.stop()
            redis.stop()
            shutil.rmtree(folder, ignore_errors=True)
