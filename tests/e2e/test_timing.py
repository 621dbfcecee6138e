"""Timers on time, and secrets that nobody but the called service sees."""
import datetime
import json
import threading
import time

import pytest

from support import World, wait_for

NAP = """
id: nap
name: nap
version: '1.0.0'
specVersion: '0.8'
start: Nap
states:
  - {name: Nap, type: sleep, duration: PT1S, transition: Up}
  - {name: Up, type: inject, data: {}, end: true}
"""
SECRET = "s3cr3t-value-4711"
SECRETS = """
id: secrets
name: secrets
version: '1.0.0'
specVersion: '0.8'
start: Call
secrets: [TOKEN]
functions:
  - {name: mirror, type: custom, operation: 'POST STUB/mirror'}
  - {name: fail, type: custom, operation: 'POST STUB/status/400?body={token}'}
  - {name: nobody, type: custom, operation: 'POST http://127.0.0.1:1/{token}'}
states:
  - name: Call
    type: switch
    dataConditions:
      - {condition: '${ .way == "fail" }', transition: Fail}
      - {condition: '${ .way == "nobody" }', transition: Nobody}
    defaultCondition: {transition: Mirror}
  - name: Mirror
    type: operation
    actions:
      - functionRef: {refName: mirror, arguments: {auth: '${ "Bearer " + $SECRETS.TOKEN }', list: ['${ $SECRETS.TOKEN }'], n: '${ .n }'}}
        actionDataFilter: {toStateData: '${ .answer }'}
    end: true
  - name: Fail
    type: operation
    actions:
      - functionRef: {refName: fail, arguments: {token: '${ $SECRETS.TOKEN }'}}
    end: true
  - name: Nobody
    type: operation
    actions:
      - functionRef: {refName: nobody, arguments: {token: '${ $SECRETS.TOKEN }'}}
    end: true
"""


@pytest.fixture(scope="module")
def world():
    world = World("timing", lifecycle_level="action", secret_token=SECRET).start()
    world.deploy(NAP, SECRETS)
    yield world
    world.stop()


def ms(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000


class Probe(threading.Thread):
    """How long Kafka takes to acknowledge a record meanwhile: what the machine adds to every timer."""

    def __init__(self, world):
        super().__init__(daemon=True)
        self.world, self.worst_ms, self.going = world, 0.0, True
        self.start()

    def run(self):
        while self.going:
            began = time.monotonic()
            self.world.produce(self.world.topics["dead-letter"], b"probe")
            self.worst_ms = max(self.worst_ms, (time.monotonic() - began) * 1000)
            time.sleep(0.02)


def test_a_timer_fires_within_50_ms(world):
    world.json("start", "nap", "--wait")
    world.json("start", "nap", "--wait")  # plans are compiled, connections warm
    probe = Probe(world)
    instances = []
    for _ in range(20):
        event = {"workflow": "nap", "instance": "nap-%d" % len(instances)}
        world.publish("io.sluice.start", "/test", event, topic=world.topics["commands"], flush=False)
        instances.append(event["instance"])
        time.sleep(0.05)
    entered = {}

    def states():
        for message in world.read("lifecycle"):
            event = message.event
            if event["type"] == "io.serverlessworkflow.state.entered.v1":
                entered[event["subject"], event["data"]["state"]] = ms(event["time"])
        return all((i, "Up") in entered for i in instances)

    wait_for("20 naps", states, 20, 0.3)
    probe.going = False
    probe.join()
    late = sorted(entered[i, "Up"] - entered[i, "Nap"] - 1000 for i in instances)
    print("late by %s ms; Kafka's slowest answer %d ms" % (late, probe.worst_ms))
    assert late[0] >= 0, "a timer fired too early: %s" % late
    # between due and the time in the log: ours, and one answer of Kafka
    assert late[-1] <= 50 + probe.worst_ms, (late, probe.worst_ms)
    assert sum(world.metric(name, "timers_fired_total") for name in world.names("timer")) >= 22


def find(world, secret):
    """Where the text stands: topics, Redis, logs."""
    found = []
    for topic in world.topics.values():
        for m in world.read(topic):
            if secret in (m.key or b"") + m.value + repr(m.raw_headers).encode():
                found.append("%s/%d@%d" % (topic, m.partition, m.offset))
    client = world.redis()
    for key in client.scan_iter(world.redis_prefix + "*", count=1000):
        kind = client.type(key)
        value = {b"hash": client.hgetall, b"string": client.get, b"zset": lambda k: client.zrange(k, 0, -1),
                 b"set": client.smembers, b"list": lambda k: client.lrange(k, 0, -1),
                 b"stream": client.xrange}[kind](key)
        if secret.decode() in repr(value) or secret in key:
            found.append("Redis %s" % key.decode())
    for name in world.names():
        if secret.decode() in world.log(name):
            found.append("log of %s" % name)
    return found


def test_a_secret_reaches_the_service_and_nothing_else(world):
    done = world.json("start", "secrets", "--wait", "--input", '{"way": "mirror", "n": 1}')
    body = world.stub.calls("/mirror")[-1]["body"]
    assert body == {"auth": "Bearer " + SECRET, "list": [SECRET], "n": 1}, "the service gets the value"
    assert done["output"]["answer"] == {"auth": "Bearer [redacted]", "list": ["[redacted]"], "n": 1}, "what it echoes is redacted"
    for way in ("fail", "nobody"):
        done = world.cli("start", "secrets", "--wait", "--input", json.dumps({"way": way}), "--output", "json")
        assert done.code == 1 and done.json["status"] == "faulted" and SECRET not in done.out, done
    assert world.stub.calls("/status/400")[-1]["query"]["body"] == SECRET
    assert find(world, b"Bearer [redacted]"), "this search finds what is there"
    assert not find(world, SECRET.encode())


def test_a_secret_elsewhere_is_refused_at_deploy(world):
    file = world.definition(NAP.replace("id: nap", "id: leak\nsecrets: [TOKEN]").replace("end: true", "end: true, stateDataFilter: "
                                                                                         "{output: '${ $SECRETS.TOKEN }'}"))
    done = world.cli("deploy", file)
    assert done.code == 1 and "stored" in done.err, done


def test_a_secret_without_value_faults_the_instance(world):
    world.deploy(SECRETS.replace("TOKEN", "NOSUCH").replace("id: secrets", "id: nosecret"))
    done = world.cli("start", "nosecret", "--wait", "--input", '{"way": "mirror"}', "--output", "json")
    assert done.code == 1 and done.json["status"] == "faulted" and done.json["error"]["code"] == "secret", done
    assert "NOSUCH" in json.dumps(done.json["error"])
