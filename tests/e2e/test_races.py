"""Named races on two coordinators: inputs that meet in an order that nobody chose, and owners that do not know that they have lost."""
import json
import os
import random
import re
import signal
import socket
import threading
import time

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from checks import answers, early, facts, nothing_left, settled, subscribed
from support import World, wait_for

PARTITIONS = 4  # of each public topic
SEED = int(os.environ.get("SLUICE_RACES_SEED", "0")) or random.randrange(1, 1 << 30)
HEAD = """
id: {id}
name: {id}
version: '1.0.0'
specVersion: '0.8'
timeouts: {{actionExecTimeout: PT1M}}
functions:
  - {{name: mirror, type: custom, operation: 'POST STUB/mirror'}}
  - {{name: slow, type: custom, operation: 'POST STUB/slow?ms=200'}}
events:
"""


def workflow(id, events, states, **names):
    text = HEAD.format(id=id)
    for name, (kind, key) in events.items():
        correlation = ", correlation: [{contextAttributeName: %s}]" % key if key else ""
        text += "  - {name: %s, type: %s, source: /race%s}\n" % (name, kind, correlation)
    return text + states


# Takes events of one type and key until it has five.
FIVE = workflow("five", {"Ping": ("five.ping", "pingid")}, """
start: Take
states:
  - name: Take
    type: event
    onEvents: [{eventRefs: [Ping], eventDataFilter: {toStateData: '${ .got }'}}]
    stateDataFilter: {output: '${ {seen: ((.seen // []) + [.got.n])} }'}
    transition: Enough
  - name: Enough
    type: switch
    dataConditions: [{condition: '${ (.seen | length) == 5 }', end: true}]
    defaultCondition: {transition: Take}
""")
ORDER = workflow("order", {"Placed": ("order.placed", "orderid"), "Paid": ("order.paid", "orderid")}, """
start: Placed
states:
  - {name: Placed, type: event, onEvents: [{eventRefs: [Placed], eventDataFilter: {toStateData: '${ .placed }'}}], transition: Paid}
  - {name: Paid, type: event, onEvents: [{eventRefs: [Paid], eventDataFilter: {toStateData: '${ .paid }'}}], end: true}
""")
# The same event by two roads: a start with key, a start without, a wait with key and one without.
TWICE = workflow("twice", {"Begin": ("twice.begin", "twiceid"), "Next": ("twice.next", "twiceid"), "Loose": ("twice.loose", None)}, """
start: Begin
states:
  - {name: Begin, type: event, onEvents: [{eventRefs: [Begin]}], transition: Next}
  - {name: Next, type: event, onEvents: [{eventRefs: [Next], eventDataFilter: {toStateData: '${ .first }'}}], transition: Again}
  - {name: Again, type: event, onEvents: [{eventRefs: [Next], eventDataFilter: {toStateData: '${ .second }'}}], transition: Loose}
  - {name: Loose, type: event, onEvents: [{eventRefs: [Loose], eventDataFilter: {toStateData: '${ .third }'}}], transition: Looser}
  - {name: Looser, type: event, onEvents: [{eventRefs: [Loose], eventDataFilter: {toStateData: '${ .fourth }'}}], end: true}
""")
ONCE = workflow("once", {"Begin": ("twice.once", None)}, """
start: Begin
states:
  - name: Begin
    type: event
    onEvents:
      - eventRefs: [Begin]
        actions: [{functionRef: {refName: mirror, arguments: {once: '${ .n }'}}}]
    end: true
""")
# Two waits of a second each for events of one type.
BELL = workflow("bell", {"Begin": ("bell.begin", "bellid"), "Ring": ("bell.ring", "bellid")}, """
start: Begin
states:
  - {name: Begin, type: event, onEvents: [{eventRefs: [Begin]}], transition: One}
  - name: One
    type: event
    onEvents: [{eventRefs: [Ring], eventDataFilter: {toStateData: '${ .one }'}}]
    timeouts: {eventTimeout: PT1S}
    transition: Two
  - name: Two
    type: event
    onEvents: [{eventRefs: [Ring], eventDataFilter: {toStateData: '${ .two }'}}]
    timeouts: {eventTimeout: PT1S}
    end: true
""")
# A call, a subscription (at a mailbox of another partition) and a timer at once.
LONG = workflow("long", {"Wake": ("long.wake", "wakeid")}, """
start: Ask
states:
  - name: Ask
    type: callback
    action: {functionRef: {refName: mirror, arguments: {n: '${ .n }'}}}
    eventRef: Wake
    eventDataFilter: {toStateData: '${ .woken }'}
    timeouts: {eventTimeout: PT1H}
    end: true
""")
QUICK = workflow("quick", {}, """
start: Call
states:
  - {name: Call, type: operation, actions: [{functionRef: {refName: mirror, arguments: {n: '${ .n }'}}}], end: true}
""").replace("events:\n", "")
INSTANT = workflow("instant", {}, """
start: Say
states:
  - {name: Say, type: inject, data: {said: 1}, end: true}
""").replace("events:\n", "")
# A call, a timer and an event of one's own: something at every owner.
WALK = workflow("walk", {"Went": ("walk.went", "walkid"), "Back": ("walk.back", "walkid")}, """
start: Go
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
""")
QUICKLY = """
id: {id}
name: {id}
version: '1.0.0'
specVersion: '0.8'
start: Go
events: [{{name: Go, type: {id}.go, source: /race{correlation}}}]
states:
  - {{name: Go, type: event, onEvents: [{{eventRefs: [Go]}}], end: true}}
"""


@pytest.fixture(scope="module")
def world():
    world = World("races", 2, 1, 1, correlation_early_window_ms=3600000)
    world.topics["more"] = world.prefix + "more"
    world.set(topics_events="%s=default,%s=default" % (world.topics["events"], world.topics["more"]))
    print("SLUICE_RACES_SEED=%d" % SEED)
    try:
        world.start()
        world.deploy(FIVE, ORDER, TWICE, ONCE, BELL, LONG, QUICK, INSTANT)
        yield world
    finally:
        world.stop()


@pytest.fixture
def chance(request):
    return random.Random("%s %d" % (request.node.name, SEED))


def publish(world, kind, n, id=None, partition=-1, topic="events", **attributes):
    world.publish(kind, "/race", {"n": n}, id=id, partition=partition, topic=world.topics[topic], flush=False, **attributes)
    world.producer.poll(0)


def flush(world):
    assert world.producer.flush(60) == 0


def command(world, kind, id, data, partition):
    """A command with an id of ours, in a partition of ours; its answer is read with `answers`."""
    event = {"specversion": "1.0", "type": "io.sluice." + kind, "source": "/race", "id": id, "datacontenttype": "application/json", "data": data}
    world.produce(world.topics["commands"], json.dumps(event).encode(), key=data.get("instance"), partition=partition,
                  headers=[("content-type", b"application/cloudevents+json")], flush=False)
    world.producer.poll(0)


def wait_answers(world, ids, timeout=60):
    def check():
        found = answers(world)
        return found if all(id in found for id in ids) else None
    found = wait_for("an answer to each of %d commands" % len(ids), check, timeout, 0.3)
    return {id: found[id] for id in ids}


def started(world, id):
    return world.lifecycle("started", id)


# --- many events of many keys ---

KEYS = 1000


def pings(chance):
    """All five events of all keys, in any order."""
    events = [(key, i) for key in range(KEYS) for i in range(5)]
    chance.shuffle(events)
    return events


def ping(world, chance, key, i):
    publish(world, "five.ping", 5 * key + i, id="ping-%d-%d" % (key, i), partition=chance.randrange(PARTITIONS), pingid="k%d" % key)


def test_a_thousand_keys_with_five_events_each_are_a_thousand_instances(world, chance):
    before = [world.metric(name, "instances_started_total") for name in world.names("coordinator")]
    for key, i in pings(chance):
        ping(world, chance, key, i)
    flush(world)
    world.wait_ended("five", KEYS, timeout=120)
    # the same once more as new records of the same events: every instance has ended, none starts again
    for key, i in pings(chance)[:KEYS]:
        ping(world, chance, key, i)
    flush(world)
    settled(world)
    ended = world.lifecycle("completed", "five")
    assert sorted(sorted(d["output"]["seen"]) for d in ended) == [list(range(5 * key, 5 * key + 5)) for key in range(KEYS)]
    assert len(started(world, "five")) == len(ended) == KEYS
    nothing_left(world)
    after = [world.metric(name, "instances_started_total") for name in world.names("coordinator")]
    assert all(now > was for now, was in zip(after, before)), "both coordinators own some of the keys: %s" % after


# --- the event that is waited for comes before the one that starts ---

def test_the_second_event_before_the_first_is_kept_for_it(world, chance):
    count = 300

    def place(n):
        publish(world, "order.placed", n, partition=chance.randrange(PARTITIONS), orderid="o%d" % n)

    def pay(n):
        publish(world, "order.paid", n + 1000, partition=chance.randrange(PARTITIONS), orderid="o%d" % n)

    # of one half surely before, of the other at the same time
    for n in range(count // 2):
        pay(n)
    flush(world)
    wait_for("early events", lambda: len(early(world)) == count // 2, 30, 0.2)
    beside = [(place, n) for n in range(count)] + [(pay, n) for n in range(count // 2, count)]
    chance.shuffle(beside)
    for what, n in beside:
        what(n)
    flush(world)
    ended = world.wait_ended("order", count)
    settled(world)
    assert sorted((d["output"]["placed"]["n"], d["output"]["paid"]["n"]) for d in world.lifecycle("completed", "order")) == \
        [(n, n + 1000) for n in range(count)]
    assert len(started(world, "order")) == len(ended) == count
    assert not early(world)
    nothing_left(world)


# --- one event on two topics ---

def test_the_same_event_on_two_topics_counts_once(world, chance):
    count = 100
    steps = []
    for n in range(count):
        for topic in ("events", "more"):
            steps.append(lambda n=n, t=topic: publish(world, "twice.begin", n, "begin-%d" % n, chance.randrange(PARTITIONS), t, twiceid="t%d" % n))
            steps.append(lambda n=n, t=topic: publish(world, "twice.once", n, "once-%d" % n, chance.randrange(PARTITIONS), t))
            # two events that are waited for, each twice
            for i in range(2):
                steps.append(lambda n=n, t=topic, i=i: publish(world, "twice.next", i, "next-%d-%d" % (n, i), chance.randrange(PARTITIONS), t,
                                                               twiceid="t%d" % n))
    chance.shuffle(steps)
    for step in steps:
        step()
    flush(world)
    # an event without a key wakes everybody who waits then, and its second copy must not wake them again
    for i in (7, 8):
        wait_for("all wait", lambda: subscribed(world, "@") == count, 60, 0.2)
        for topic in ("events", "more"):
            publish(world, "twice.loose", i, "loose-%d" % i, chance.randrange(PARTITIONS), topic)
        flush(world)
        settled(world)
    world.wait_ended("twice", count)
    world.wait_ended("once", count)
    outputs = [d["output"] for d in world.lifecycle("completed", "twice")]
    assert sorted(o["n"] for o in outputs) == list(range(count))
    assert all([o["first"]["n"] + o["second"]["n"], o["third"]["n"], o["fourth"]["n"]] == [1, 7, 8] for o in outputs), "one was taken twice"
    assert len(started(world, "twice")) == len(started(world, "once")) == count
    assert sorted(c["body"]["once"] for c in world.stub.calls("/mirror") if "once" in c["body"]) == list(range(count))
    assert not early(world)
    nothing_left(world)


# --- deploy, then publish ---

class Answers:
    """The answers to commands as they come."""

    def __init__(self, world):
        self.consumer = Consumer({"bootstrap.servers": world.kafka, "group.id": "none", "enable.auto.commit": False, "log_level": 0,
                                  "fetch.wait.max.ms": 10})
        name = world.topics["lifecycle"]
        partitions = self.consumer.list_topics(name, 10).topics[name].partitions
        self.consumer.assign([TopicPartition(name, p, self.consumer.get_watermark_offsets(TopicPartition(name, p), 10)[1]) for p in partitions])

    def wait(self, id, timeout=30):
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            message = self.consumer.poll(1)
            event = json.loads(message.value()) if message and not message.error() else {}
            if event.get("commandid") == id:
                return event["data"]
        raise AssertionError("no answer to %s within %g s" % (id, timeout))


def test_an_event_published_right_after_deploy_always_starts(world):
    """By the command line a few times, then by commands of our own, which are quicker."""
    heard = Answers(world)
    for n in range(200):
        id = "quick%d" % n
        text = QUICKLY.format(id=id, correlation=", correlation: [{contextAttributeName: quickid}]" if n % 2 else "")
        if n < 10:
            world.deploy(text)
        else:
            command(world, "deploy", "deploy-%d" % n, {"definition": text, "file": id + ".sw.yaml"}, n % PARTITIONS)
            answer = heard.wait("deploy-%d" % n)
            assert answer["ok"], answer
        publish(world, id + ".go", n, partition=(n // 2) % PARTITIONS, quickid="q%d" % n)
    flush(world)
    heard.consumer.close()

    def ended():
        return sorted(d["output"]["n"] for d in world.lifecycle("completed") if d["workflow"].startswith("quick") and d["workflow"] != "quick")
    wait_for("200 instances", lambda: len(ended()) >= 200, 60, 0.3)
    settled(world)
    assert ended() == list(range(200))
    nothing_left(world)


# --- a timer and the event it races with ---

def at_their_time(steps):
    """Runs each (seconds from now, what) when it is its time."""
    began = time.monotonic()
    for at, what in sorted(steps, key=lambda step: step[0]):
        time.sleep(max(0.0, began + at - time.monotonic()))
        what()


def ms(text):
    import datetime
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000


def test_a_timer_against_the_event_it_waits_for_ends_each_wait_in_one_way(world, chance):
    count = 200
    begun = set()

    def ring(n, i, partition=-1):
        publish(world, "bell.ring", i, "ring-%d-%d" % (n, i), partition, bellid="b%d" % n)

    def begin(n):
        publish(world, "bell.begin", n, "bell-%d" % n, n % PARTITIONS, bellid="b%d" % n)
        begun.add(n)
        if n % 10 == 0:  # in order behind their start: in time on any machine
            ring(n, 0, n % PARTITIONS)
            ring(n, 1, n % PARTITIONS)

    steps = []
    for n in range(count):
        at = n * 0.012
        steps.append((at, lambda n=n: begin(n)))
        if n % 10 > 1:  # around the moment when the time is over
            steps += [(at + due + chance.uniform(-0.25, 0.35), lambda n=n, i=i: ring(n, i)) for i, due in enumerate((1.0, 2.0))]
    at_their_time(steps)
    flush(world)
    world.wait_ended("bell", count)
    for n in range(1, count, 10):  # too late on any machine
        ring(n, 0)
        ring(n, 1)
    flush(world)
    settled(world)
    ended = world.lifecycle("completed", "bell")
    assert len(started(world, "bell")) == len(ended) == count
    kept, taken, way = early(world), [], {"events": 0, "mixed": 0, "timers": 0}
    rung = {m.event["id"]: m.time_ms for m in world.events("bell.ring")}
    for d in ended:
        n, out = d["output"]["n"], d["output"]
        rings = [out[wait]["n"] for wait in ("one", "two") if wait in out]
        assert len(set(rings)) == len(rings), d
        assert n % 10 != 0 or rings == [0, 1], d
        assert n % 10 != 1 or not rings, d
        # what the timer ended has lasted as long as it says
        assert ms(d["endedAt"]) - ms(d["startedAt"]) >= 1000 * (2 - len(rings)), d
        if "one" in out and "two" not in out:  # the timer of the first wait, when it comes late, is not that of the second
            assert ms(d["endedAt"]) >= rung["ring-%d-%d" % (n, out["one"]["n"])] + 1000, d
        taken += ["ring-%d-%d" % (n, i) for i in rings]
        way["timers" if not rings else "events" if len(rings) == 2 else "mixed"] += 1
    assert sorted(kept + taken) == sorted("ring-%d-%d" % (n, i) for n in range(count) for i in range(2)), "each is taken once or kept, never both"
    print("bell: %s" % way)
    for id in [id for id in kept if int(id.split("-")[1]) % 10 > 1][:3] + taken[:1]:
        decisions = [why["decision"] for why in world.json("why", id)]
        assert decisions[-1] == ("early" if id in kept else "delivered"), (id, decisions)
    nothing_left(world)


# --- cancel against start ---

def test_a_cancel_against_a_start_leaves_nothing_behind(world, chance):
    count = 200
    for n in range(count):
        id = "race-%d" % n
        both = [("start", {"workflow": ("long", "quick", "instant")[n % 3], "instance": id, "input": {"n": "c%d" % n, "wakeid": id}}),
                ("cancel", {"instance": id, "reason": "race"})]
        for kind, data in both if n % 4 < 2 else both[::-1]:
            command(world, kind, "%s-%s" % (kind, id), data, chance.randrange(PARTITIONS))
        if n % 6 == 0:
            publish(world, "long.wake", n, "wake-%d" % n, chance.randrange(PARTITIONS), wakeid=id)
    flush(world)
    ids = ["race-%d" % n for n in range(count)]
    first = wait_answers(world, ["%s-%s" % (kind, id) for kind in ("start", "cancel") for id in ids])
    settled(world)
    cancelled = {d["instance"] for d in world.lifecycle("cancelled")}
    completed = {d["instance"] for d in world.lifecycle("completed") if d["instance"] in ids}
    for id in ids:
        assert first["start-" + id] == [(True, None)], (id, first["start-" + id])
        (ok, reason), = first["cancel-" + id]
        assert ok == (id in cancelled), (id, ok, reason)
        assert ok or reason in ("unknown-instance", "ended"), (id, reason)
        assert reason != "ended" or id in completed, id
    # what lives now is ended by a cancel that nothing races with
    alive = [id for id in ids if id not in cancelled | completed]
    for id in ids:
        command(world, "cancel", "late-" + id, {"instance": id}, chance.randrange(PARTITIONS))
    flush(world)
    late = wait_answers(world, ["late-" + id for id in ids])
    for id in ids:
        assert late["late-" + id] == ([(True, None)] if id in alive else [(False, "ended")]), (id, late["late-" + id])
    settled(world)
    print("cancel: %d accepted, %d refused as unknown, %d as ended" % tuple(
        sum(first["cancel-" + id][0] == answer for id in ids) for answer in ((True, None), (False, "unknown-instance"), (False, "ended"))))
    begun = [d["instance"] for d in world.lifecycle("started") if d["instance"] in ids]
    ended = [d["instance"] for what in ("completed", "cancelled") for d in world.lifecycle(what) if d["instance"] in ids]
    assert sorted(begun) == sorted(ended) == sorted(ids)
    calls = [c["body"]["n"] for c in world.stub.calls("/mirror") if str(c["body"].get("n")).startswith("c")]
    assert len(calls) == len(set(calls)), "no call is made twice"
    nothing_left(world)


# --- everything once more ---

def test_all_public_records_delivered_again_after_all_ended_change_nothing(world):
    """Kafka may deliver from any older offset again: here from the first one of all public topics, events and commands."""
    settled(world)
    ids, replies, calls = facts(world)
    assert len(replies) >= 8, "the deployments at least"
    world.services("stop")
    group = world.prefix + "coordinator-route"
    consumer = Consumer({"bootstrap.servers": world.kafka, "group.id": group, "enable.auto.commit": False, "log_level": 0})
    topics = [world.topics[t] for t in ("events", "more", "commands")]
    first = [TopicPartition(t, p, consumer.get_watermark_offsets(TopicPartition(t, p), 10)[0]) for t in topics for p in range(PARTITIONS)]

    def rewound():
        try:
            return all(tp.error is None for tp in consumer.commit(offsets=first, asynchronous=False))
        except KafkaException:  # static members are members until their session is over
            return False
    wait_for("the offsets are set back", rewound, 60, 0.3)
    consumer.close()
    world.services("start")
    settled(world, 120)
    again, replies_again, calls_again = facts(world)
    assert calls_again == calls
    # who has not been there could remember nothing: a cancel that was refused then may now be refused for another reason
    assert {id: found for id, found in replies_again.items() if {ok for ok, _ in found} != {ok for ok, _ in replies[id]}} == {}
    new = [m.event for m in world.read("lifecycle") if m.event["id"] not in ids and m.event["type"] != "io.sluice.answer"]
    assert not new, (len(new), new[:3])
    nothing_left(world)


# --- owners that do not know that they have lost ---

class Load(threading.Thread):
    """Walks: each starts with one event and gets its second from another partition at the same time."""

    def __init__(self, world, chance, every_s):
        super().__init__(daemon=True)
        self.world, self.chance, self.every_s, self.going, self.count = world, chance, every_s, True, 0
        self.start()

    def run(self):
        while self.going:
            for kind in ("went", "back"):
                publish(self.world, "walk." + kind, self.count, "%s-%d" % (kind, self.count), self.chance.randrange(PARTITIONS),
                        walkid="w%d" % self.count)
            self.count += 1
            time.sleep(self.every_s)

    def finish(self):
        self.going = False
        self.join()
        flush(self.world)
        return self.count


class Gate:
    """A way to Redis on which scripts (commits) can be held up, as a network may."""

    def __init__(self, url):
        host, port = re.fullmatch(r"redis://([^:/]+):(\d+)/(\d+)", url).group(1, 2)
        self.to, self.closed, self.lock, self.held = (host, int(port)), threading.Event(), threading.Condition(), 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "redis://127.0.0.1:%d/%s" % (self.listener.getsockname()[1], url.rsplit("/", 1)[1])
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
                server = socket.create_connection(self.to)
            except OSError:
                return
            threading.Thread(target=self.pump, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self.pump, args=(server, client, False), daemon=True).start()

    def pump(self, source, target, towards):
        try:
            while data := source.recv(1 << 20):
                if towards and self.closed.is_set() and b"EVALSHA" in data:
                    with self.lock:
                        self.held += 1
                        self.lock.wait_for(lambda: not self.closed.is_set())
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.held = 0
        self.closed.set()

    def open(self):
        with self.lock:
            self.closed.clear()
            self.lock.notify_all()


OWNED = {"coordinator": 8, "executor": 8, "timer": 4}


def owned(world, name):
    return world.metric(name, "partitions_owned")


def fenced(world):
    return sum(world.metric(name, "commits_total", result="fenced") for name in world.names("coordinator"))


def test_an_owner_that_was_stopped_past_its_session_changes_nothing_when_it_goes_on(chance):
    world = World("zombie", group_session_timeout_ms=2000)
    gate = Gate(world.redis_url)
    try:
        by_gate = '[ "$N" != 1 ] || set -- "$@" --redis.url %s\nexec "$REAL" "$@"\n' % gate.url
        world.programs(coordinator=by_gate, timer=by_gate)
        world.start()
        world.deploy(WALK)
        pids = world.pids()
        load = Load(world, chance, 0.03)
        for stopped in (["coordinator-1", "executor-1", "timer-1"], ["coordinator-2"], ["coordinator-1", "timer-1"]):
            time.sleep(chance.uniform(1, 1.3))
            if "coordinator-1" in stopped:  # what it has written on its way to Redis arrives when all is in other hands
                before = fenced(world)
                gate.close()
                wait_for("commits held up", lambda: gate.held >= 2, 30)
            for name in stopped:
                world.kill(name, signal.SIGSTOP)
            try:
                for name in stopped:
                    part, number = name.split("-")
                    heir = "%s-%d" % (part, 3 - int(number))
                    wait_for("%s has all partitions" % heir, lambda: owned(world, heir) == OWNED[part] and world.http(heir, "/readyz")[0] == 200,
                             60, 0.1)
                time.sleep(0.5)  # and works on them
                gate.open()
                time.sleep(0.2)
            finally:
                for name in stopped:
                    world.kill(name, signal.SIGCONT)
            for part, total in OWNED.items():
                wait_for("%s share again" % part, lambda: sum(owned(world, n) for n in world.names(part)) == total and
                         min(owned(world, n) for n in world.names(part)) > 0, 60, 0.1)
            wait_for("all are ready", world.ready, 60)
            if "coordinator-1" in stopped:
                assert fenced(world) > before, "the commit that came late was not refused"
        count = load.finish()
        world.wait_ended("walk", count, timeout=60)
        settled(world)
        ended = world.lifecycle("completed", "walk")
        print("walks: %d; commits fenced: %d" % (count, fenced(world)))
        assert sorted(d["output"]["answer"]["n"] for d in ended) == list(range(count))
        assert all(d["output"] == {"n": n, "answer": {"n": n}, "back": {"n": n}} for d in ended for n in [d["output"]["n"]])
        assert len(started(world, "walk")) == count
        assert not world.lifecycle("faulted") and not world.lifecycle("cancelled")
        # a call that was under way at a stopped executor is made again by the next, under the same key
        keys = {}
        for call in world.stub.calls("/slow"):
            keys.setdefault(call["body"]["n"], set()).add(call["key"])
        assert sorted(keys) == list(range(count)) and all(len(k) == 1 for k in keys.values()), {n: k for n, k in keys.items() if len(k) > 1}
        facts(world)
        nothing_left(world)
        assert world.pids() == pids, "no process ended for it"
    finally:
        gate.open()
        world.stop()
        gate.listener.close()
