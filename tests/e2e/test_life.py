"""The life of the services: rolling restarts, a start before Kafka and Redis are there, both restarted under load."""
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time

from support import BIN, CRASHES, Server, World, free_port, wait_for

# A call that takes a moment, a nap, and an event of one's own in between.
TRIP = """
id: trip
name: trip
version: '1.0.0'
specVersion: '0.8'
start: Go
timeouts: {actionExecTimeout: PT1M}
events:
  - {name: Went, type: trip.went, source: /test, correlation: [{contextAttributeName: tripid}]}
  - {name: Back, type: trip.back, source: /test, correlation: [{contextAttributeName: tripid}]}
functions:
  - {name: slow, type: custom, operation: 'POST STUB/slow?ms=300'}
states:
  - name: Go
    type: event
    onEvents:
      - eventRefs: [Went]
        actions:
          - functionRef: {refName: slow, arguments: {n: '${ .n }'}}
            actionDataFilter: {toStateData: '${ .answer }'}
    transition: Nap
  - {name: Nap, type: sleep, duration: PT0.5S, transition: Wait}
  - name: Wait
    type: event
    onEvents: [{eventRefs: [Back], eventDataFilter: {toStateData: '${ .back }'}}]
    end: true
"""


# A call that takes long, and nothing else.
LONG = """
id: long
name: long
version: '1.0.0'
specVersion: '0.8'
start: Go
timeouts: {actionExecTimeout: PT1M}
events:
  - {name: Asked, type: long.asked, source: /test}
functions:
  - {name: slow, type: custom, operation: 'POST STUB/slow?ms=3000'}
states:
  - name: Go
    type: event
    onEvents:
      - eventRefs: [Asked]
        actions:
          - functionRef: {refName: slow, arguments: {n: '${ .n }'}}
            actionDataFilter: {toStateData: '${ .answer }'}
    end: true
"""


class Executor:
    """One more executor, which joins the group of those that run; its port and its log are where World looks for them."""

    def __init__(self, world, number):
        self.world, self.name = world, "executor-%d" % number
        base = os.path.join(world.dir, self.name)
        with open(base + ".log", "wb") as log:
            self.process = subprocess.Popen([str(BIN / "sluice-executor"), "--service.ordinal", str(number), "--http.port_file",
                                             base + ".port"], env=world.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def ready(self, timeout=40):
        wait_for(self.name, lambda: self.world.http(self.name, "/readyz")[0] == 200, timeout, 0.01)

    def owned(self):
        return self.world.metric(self.name, "partitions_owned")

    def stop(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        code = self.process.wait(30)
        log = self.world.log(self.name)
        assert code == 0 and not any(crash in log for crash in CRASHES), "%s: exit %d: %s" % (self.name, code, log[-2000:])


class Load(threading.Thread):
    """Publishes the events of one trip after the other until it is told to stop."""

    def __init__(self, world, every_s, kinds=("trip.went", "trip.back")):
        super().__init__(daemon=True)
        self.world, self.every_s, self.kinds, self.going, self.count, self.lost = world, every_s, kinds, True, 0, []
        self.start()

    def run(self):
        while self.going:
            for i, kind in enumerate(self.kinds):
                self.world.publish(kind, "/test", {"n": self.count}, id="%s-%d" % (kind, self.count), tripid="t%d" % self.count,
                                   partition=(self.count + i) % 4, flush=False)
            self.world.producer.poll(0)
            self.count += 1
            time.sleep(self.every_s)

    def finish(self):
        self.going = False
        self.join()
        assert self.world.producer.flush(60) == 0
        return self.count


def check_trips(world, count, timeout=60):
    """Every trip once, with the right output, and every call once."""
    ended = world.wait_ended("trip", count, timeout=timeout)
    assert sorted(d["output"]["answer"]["n"] for d in ended) == list(range(count))
    assert all(d["output"] == {"n": n, "answer": {"n": n}, "back": {"n": n}} for d in ended for n in [d["output"]["n"]])
    assert len(world.lifecycle("started", "trip")) == count
    assert not world.lifecycle("faulted") and not world.lifecycle("cancelled")
    calls = [c["body"]["n"] for c in world.stub.calls("/slow")]
    return sorted(calls) == list(range(count)) or "calls: %d for %d trips; more than once: %s" % (
        len(calls), count, sorted({n for n in calls if calls.count(n) > 1})[:20])


def check_long(world, count, timeout=60):
    """Every one once, with the right output. Returns the keys of calls that were made again."""
    ended = world.wait_ended("long", count, timeout=timeout)
    assert sorted(d["output"]["answer"]["n"] for d in ended) == list(range(count))
    assert len(world.lifecycle("started", "long")) == count
    assert not world.lifecycle("faulted")
    calls = [(c["body"]["n"], c["key"]) for c in world.stub.calls("/slow")]
    assert {n for n, _ in calls} == set(range(count)) and len(set(calls)) == count, "the same key for the same call"
    return sorted({key for n, key in calls if calls.count((n, key)) > 1})


def committed(world):
    """Groups whose committed offset is not at the end of a topic."""
    wrong = []
    for group, topic in (("coordinator-route", "events"), ("coordinator-route", "commands"), ("coordinator-own", "instances"),
                         ("executor", "actions"), ("timer", "timers")):
        offsets, ends = world.offsets(group, topic)
        wrong += ["%s %s/%d: %d of %d" % (group, topic, p, offsets[p], end) for p, end in ends.items() if end and offsets[p] != end]
    return wrong


def test_a_rolling_restart_by_sigterm_repeats_and_loses_nothing():
    world = World("rolling")
    try:
        world.start()
        world.deploy(TRIP)
        load = Load(world, 0.03)
        time.sleep(1)
        for name in world.names():
            before = world.pid(name)
            world.kill(name, signal.SIGTERM)
            wait_for("%s again" % name, lambda: world.pid(name) not in (0, before) and world.http(name, "/readyz")[0] == 200, 30)
        count = load.finish()
        assert check_trips(world, count) is True, check_trips(world, count)
        for name in world.names():
            assert " ended with 0" in world.log(name), "%s: %s" % (name, world.log(name)[-500:])
            assert "not drained within" not in world.log(name), name
        # a stop of all: every offset is committed; after a start nothing is done again
        world.services("stop")
        assert not committed(world), committed(world)
        lifecycle, calls = len(world.read("lifecycle")), len(world.stub.calls())
        world.services("start")
        world.publish("trip.went", "/test", {"n": count}, tripid="last")
        world.publish("trip.back", "/test", {"n": count}, tripid="last")
        assert check_trips(world, count + 1) is True, check_trips(world, count + 1)
        assert (len(world.read("lifecycle")), len(world.stub.calls())) == (lifecycle + 2, calls + 1)
    finally:
        world.stop()


def test_an_executor_that_joins_is_ready_when_the_others_have_made_room():
    world = World("joins", 1, 1, 1)
    second = None
    try:
        world.start()
        assert world.metric("executor-1", "partitions_owned") == 8
        second = Executor(world, 2)
        second.ready()
        # calls that begin now stay where they are
        assert world.metric("executor-1", "partitions_owned") == 4
        wait_for("its half", lambda: second.owned() == 4, 10)
    finally:
        if second:
            second.stop()
        world.stop()


def test_executors_that_join_repeat_no_call():
    world = World("hands", 1, 1, 1, executor_hand_over_ms="10s")
    more = []
    try:
        world.start()
        world.deploy(LONG)
        load = Load(world, 0.05, ["long.asked"])
        time.sleep(4)
        for number in (2, 3):
            more.append(Executor(world, number))
            more[-1].ready()
            assert more[-1].owned() >= 2, "ready means that it has its share"
            time.sleep(4)
        counts = [world.metric("executor-1", "partitions_owned")] + [e.owned() for e in more]
        assert sum(counts) == 8 and min(counts) >= 2, counts
        again = check_long(world, load.finish())
        assert not again, "%d calls were made again" % len(again)
        for name in ("executor-2", "executor-3"):
            assert world.metric(name, "calls_total", result="ok") > 10, name
    finally:
        for executor in more:
            executor.stop()
        world.stop()


def test_a_call_longer_than_handing_over_may_take_is_made_again():
    world = World("bound", 1, 1, 1, executor_hand_over_ms="1s")
    second = None
    try:
        world.start()
        world.deploy(LONG)
        load = Load(world, 0.1, ["long.asked"])
        time.sleep(4)
        second = Executor(world, 2)
        second.ready()
        time.sleep(2)
        again = check_long(world, load.finish())
        # those of half the partitions that had begun in the 3 s before
        assert 0 < len(again) < 35, again
    finally:
        if second:
            second.stop()
        world.stop()


def hands_over(world, executors):
    """The first has calls under way in all partitions, the second has joined and waits for its half."""
    executors.append(Executor(world, 1))
    executors[0].ready()
    load = Load(world, 0.1, ["long.asked"])
    time.sleep(4)
    executors.append(Executor(world, 2))
    wait_for("it is in the group", lambda: "another member" in world.log("executor-1"), 20)
    time.sleep(0.5)
    assert (executors[0].owned(), executors[1].owned()) == (8, 0)
    return load


def test_a_session_that_ends_while_handing_over_loses_nothing():
    """The one that hands over stands still until the group has given it up, and goes on afterwards."""
    world = World("stands", 1, 0, 1, executor_hand_over_ms="10s")
    executors = []
    try:
        world.start()
        world.deploy(LONG)
        load = hands_over(world, executors)
        os.kill(executors[0].process.pid, signal.SIGSTOP)
        wait_for("the other has all", lambda: executors[1].owned() == 8, 30)
        os.kill(executors[0].process.pid, signal.SIGCONT)
        wait_for("it is back", lambda: executors[0].owned() == 4 and executors[1].owned() == 4, 40)
        check_long(world, load.finish())
    finally:
        for executor in executors:
            executor.stop()
        world.stop()


def test_a_stop_while_handing_over_repeats_no_call():
    world = World("stops", 1, 0, 1, executor_hand_over_ms="10s")
    executors = []
    try:
        world.start()
        world.deploy(LONG)
        load = hands_over(world, executors)
        executors.pop(0).stop()
        wait_for("the other has all", lambda: executors[0].owned() == 8, 30)
        again = check_long(world, load.finish())
        assert not again, "%d calls were made again" % len(again)
    finally:
        for executor in executors:
            executor.stop()
        world.stop()


def test_what_is_being_handed_over_when_an_executor_is_killed_is_somebodys():
    """It is back under its name before the group has missed it."""
    world = World("orphans", 1, 0, 1, executor_hand_over_ms="10s")
    executors = []
    try:
        world.start()
        world.deploy(LONG)
        load = hands_over(world, executors)
        executors[0].process.kill()
        executors[0].process.wait(10)
        executors[0] = Executor(world, 1)
        wait_for("each has its half", lambda: executors[0].owned() == 4 and executors[1].owned() == 4, 30)
        check_long(world, load.finish())
    finally:
        for executor in executors:
            executor.stop()
        world.stop()


def test_a_start_before_kafka_and_redis_waits_and_both_may_restart_under_load():
    folder = tempfile.mkdtemp(prefix="sluice-e2e-own-")
    ports = free_port(), free_port()
    kafka, redis = Server("kafka", folder, ports[0]), Server("redis", folder, ports[1])
    # the two events of a trip come by different partitions, which may be far apart after an outage
    world = World("waits", 1, 1, 1, kafka="127.0.0.1:%d" % ports[0], redis_url="redis://127.0.0.1:%d/0" % ports[1],
                  correlation_early_window_ms="10m")
    try:
        # nobody is there: alive, not ready, and the log says why
        starting = world.services("start", wait=False)
        for name in world.names():
            wait_for("%s says what it waits for" % name, lambda: "cannot start yet" in world.log(name) and world.kafka in world.log(name), 20)
            wait_for("%s is alive" % name, lambda: world.http(name, "/healthz")[0] == 200, 10)
            status, text = world.http(name, "/readyz")
            assert status == 503 and world.kafka in text, (name, text)
        # Kafka without topics: somebody may make them while we wait; the message names the command
        alone = world.pids()
        kafka.start()
        for name in world.names():
            wait_for("%s misses the topics" % name, lambda: "sluice topics create" in world.log(name), 30)
            wait_for("%s says so" % name, lambda: "sluice topics create" in world.http(name, "/readyz")[1], 10)
        assert world.pids() == alone
        world.create_topics()
        # no Redis yet
        for name in world.names():
            wait_for("%s misses Redis" % name, lambda: "Redis: not connected" in world.log(name), 30)
            assert world.http(name, "/readyz")[0] == 503
        redis.start()
        assert starting.wait(60) == 0, "services.sh waits until all are ready"
        assert world.ready()
        world.deploy(TRIP)

        before = world.pids()
        load = Load(world, 0.1)
        time.sleep(1)
        redis.stop()
        wait_for("not ready without Redis", lambda: not world.ready(), 10)
        time.sleep(0.5)
        redis.start()
        wait_for("ready again", world.ready, 30)
        time.sleep(1)
        away_ms = time.time() * 1000
        kafka.stop()
        time.sleep(0.5)
        kafka.start()
        time.sleep(1)
        count = load.finish()
        wait_for("ready again", world.ready, 30)
        check_trips(world, count, 90)
        # out of reach for longer than its session, an executor lost its partitions: calls under way then were made again
        calls = [(c["body"]["n"], c["key"]) for c in world.stub.calls("/slow")]
        assert {n for n, _ in calls} == set(range(count)) and len(set(calls)) == count, "the same key for the same call"
        first = {}
        for call in world.stub.calls("/slow"):
            first.setdefault(call["key"], call["time_ms"])
        again = {key for n, key in calls if calls.count((n, key)) > 1}
        assert all(first[key] > away_ms - 2000 for key in again), "only what was under way, or not yet confirmed, when Kafka went"
        assert world.pids() == before, "they reconnect, in the same processes"
    finally:
        try:
            world.stop()
        finally:
            kafka.stop()
            redis.stop()
            shutil.rmtree(folder, ignore_errors=True)
