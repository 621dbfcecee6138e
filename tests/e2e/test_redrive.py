"""Dead letters put back on their road: what was refused is processed once the cause is mended, once, and what cannot be is refused."""
import json
import re
import uuid

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from support import World, wait_for

COUNT = """
id: count
name: count
version: '1.0.0'
specVersion: '0.8'
start: Take
events:
  - {name: Came, type: count.came, source: /here}
states:
  - name: Take
    type: event
    onEvents: [{eventRefs: [Came]}]
    stateDataFilter: {output: '${ {n: .n, size: (.text // "" | length)} }'}
    end: true
"""
# Waits at A; B and C that come first fill its inbox.
FULL = """
id: full
name: full
version: '1.0.0'
specVersion: '0.8'
start: Begin
events:
  - {name: Begin, type: full.begin, source: /x, correlation: [{contextAttributeName: pairid}]}
  - {name: A, type: full.a, source: /x, correlation: [{contextAttributeName: pairid}]}
  - {name: B, type: full.b, source: /x, correlation: [{contextAttributeName: pairid}]}
states:
  - {name: Begin, type: event, onEvents: [{eventRefs: [Begin]}], transition: A}
  - {name: A, type: event, onEvents: [{eventRefs: [A]}], transition: B1}
  - {name: B1, type: event, onEvents: [{eventRefs: [B], eventDataFilter: {toStateData: '${ .b1 }'}}], transition: B2}
  - {name: B2, type: event, onEvents: [{eventRefs: [B], eventDataFilter: {toStateData: '${ .b2 }'}}], transition: B3}
  - {name: B3, type: event, onEvents: [{eventRefs: [B], eventDataFilter: {toStateData: '${ .b3 }'}}], end: true}
"""
SAY = """
id: say
name: say
version: '1.0.0'
specVersion: '0.8'
start: Say
states:
  - {name: Say, type: inject, data: {said: true}, end: true}
"""
# Faults at its call the first time, then waits.
FLAKY = """
id: flaky
name: flaky
version: '1.0.0'
specVersion: '0.8'
start: Call
functions:
  - {name: flaky, type: custom, operation: POST STUB/flaky?fail=1}
events:
  - {name: Go, type: flaky.go, source: /x, correlation: [{contextAttributeName: pairid}]}
states:
  - {name: Call, type: operation, actions: [{functionRef: {refName: flaky, arguments: {x: 1}}}], transition: Wait}
  - {name: Wait, type: event, onEvents: [{eventRefs: [Go], eventDataFilter: {toStateData: '${ .go }'}}], end: true}
"""
STRUCTURED = [("content-type", b"application/cloudevents+json")]
LOW = {"data_depth_max": 20, "event_bytes_max": "1MiB", "instance_inbox_max": 2}
HIGH = {"data_depth_max": 100, "event_bytes_max": "8MiB", "instance_state_bytes_max": "16MiB", "instance_inbox_bytes_max": "16MiB",
        "batch_bytes_max": "32MiB", "instance_inbox_max": 100}


class RedriveWorld(World):
    def create_topics(self):
        self.set(event_bytes_max=HIGH["event_bytes_max"])  # room in the topics for what is raised later
        super().create_topics()
        self.set(event_bytes_max=LOW["event_bytes_max"])

    def raised(self):
        """The limits are higher now, for the services and for the command line."""
        if self.env["SLUICE_DATA_DEPTH_MAX"] != str(HIGH["data_depth_max"]):
            self.services("stop")
            self.set(**HIGH)
            self.services("start")
            wait_for("ready", self.ready)
        return self

    def letter(self, check):
        """PARTITION/OFFSET of a dead letter, and its record."""
        found = self.wait_dead(check)
        return "%d/%d" % (found.partition, found.offset), found

    def refused(self, value, headers, partition=-1, topic="events", key=None):
        """Produces a record that will be refused; its letter."""
        key = key or uuid.uuid4().hex.encode()
        self.produce(self.topics[topic], value, key, headers, partition)
        name, found = self.letter(lambda m: m.key == key)
        return name, found, key

    def redrive(self, *words, code=0):
        done = self.cli("dead-letters", "redrive", "--output", "json", *words)
        assert done.code == code, done
        return done.json

    def with_key(self, topic, key):
        return [m for m in self.read(topic) if m.key == key]


@pytest.fixture(scope="module")
def world():
    world = RedriveWorld("redrive", 1, 1, 1, **LOW).start()
    world.deploy(COUNT, FULL, SAY, FLAKY)
    yield world
    world.stop()


class Letter:
    """A record that was refused while the limits were low."""

    def __init__(self, world, value, headers, **more):
        self.value, self.headers = value, headers
        self.name, self.record, self.key = world.refused(value, headers, **more)


@pytest.fixture(scope="module")
def letters(world):
    """One of each kind, from before the limits were raised."""
    event = {"specversion": "1.0", "type": "count.came", "source": "/here"}
    command = {"specversion": "1.0", "type": "io.sluice.start", "source": "/me", "id": uuid.uuid4().hex,
               "data": {"workflow": "say", "input": json.loads(deep(40))}}
    return {"deep": Letter(world, deep(40, n=10), binary("deep-1"), partition=2),
            "big": Letter(world, json.dumps(dict(event, id="big", data={"n": 20, "text": "x" * 3000000})).encode(), STRUCTURED, partition=1),
            "gone": Letter(world, json.dumps(dict(event, id="gone", data={"n": 21, "text": "y" * 3000000})).encode(), STRUCTURED, partition=3),
            "command": Letter(world, json.dumps(command).encode(), STRUCTURED, topic="commands")}


@pytest.fixture(scope="module")
def full(world):
    """An instance whose inbox was full for its third event."""
    key = uuid.uuid4().hex
    world.publish("full.begin", "/x", pairid=key)
    instance = wait_for("the instance", lambda: world.list(workflow="full", status="waiting"))[0]["id"]
    ids = [world.publish("full.b", "/x", {"n": n}, pairid=key, partition=0) for n in (1, 2, 3)]
    name, letter = world.letter(lambda m: m.header("sluice-reason") == "inbox-full")
    assert letter.event["id"] == ids[2] and letter.header("sluice-instance") == instance
    return key, instance, ids[2], name


def deep(levels, **more):
    inner = json.loads("[" * levels + "]" * levels)
    return json.dumps(dict(more, deep=inner)).encode()


def binary(id, kind="count.came"):
    return [("ce_specversion", b"1.0"), ("ce_type", kind.encode()), ("ce_source", b"/here"), ("ce_id", id.encode()),
            ("content-type", b"application/json"), ("trace", b"\xff\x00")]


def counted(world, n):
    return [d for d in world.lifecycle("completed", "count") if d["output"]["n"] == n]


# --- before the cause is mended ---

def test_usage_and_letters_that_are_not_there(world):
    for words in ([], ["x"], ["1/2", "--all"], ["1/2", "--reason", "x"], ["1/-2"]):
        done = world.cli("dead-letters", "redrive", *words)
        assert done.code == 2 and done.err, (words, done)
    for words in (["list", "--all"], ["show", "0/1", "--topic", "x"], ["list", "--dry-run"]):
        assert world.cli("dead-letters", *words).code == 2, words
    rows = world.redrive("0/999999", "9999/0", code=1)
    assert [(r["letter"], r["result"]) for r in rows] == [("0/999999", "refused"), ("9999/0", "refused")]
    assert re.search(r"no such letter: partition 0 of \S+ holds \d+ to -?\d+", rows[0]["text"]), rows
    done = world.cli("dead-letters", "redrive", "0/999999")
    assert done.code == 1 and "no such letter" in done.out and "1 refused" in done.out, done
    assert world.redrive("--reason", "no reason that there is") == []
    text = world.ok("dead-letters", "--help").out
    assert "redrive" in text and "--dry-run" in text and "sluice-redriven" in text


def test_what_is_too_big_as_ever_is_not_sent(world, letters, full):
    assert len(letters["big"].record.value) == 65536
    row = world.redrive(letters["big"].name, code=1)[0]
    assert row["result"] == "refused" and "event.bytes_max" in row["text"], row


def test_a_letter_whose_cause_remains_comes_back_and_counts_its_attempts(world):
    headers = binary("again-1")
    name, letter, key = world.refused(deep(40, n=1), headers)
    assert letter.header("sluice-attempts") == "1"
    rows = world.redrive(name)
    assert rows == [{"letter": name, "result": "redriven", "to": world.topics["events"]}]
    second, letter = world.letter(lambda m: m.key == key and m.header("sluice-attempts") == "2")
    assert letter.value == deep(40, n=1) and letter.header("sluice-redriven") == name
    assert [h for h in letter.raw_headers if not h[0].startswith("sluice-")] == headers
    shown = world.json("dead-letters", "show", second)[0]
    assert (shown["attempts"], shown["redriven-from"]) == ("2", name)
    assert "ce_id" in shown["headers"] and not any(h.startswith("sluice-") for h in shown["headers"])
    # the new one is a letter of its own; the old one was redriven
    assert world.redrive(name)[0]["result"] == "redriven-before"
    world.redrive(second)
    third, letter = world.letter(lambda m: m.key == key and m.header("sluice-attempts") == "3")
    assert letter.header("sluice-redriven") == second and third != second
    assert [h for h in letter.raw_headers if not h[0].startswith("sluice-")] == headers


def test_internal_records_are_refused(world):
    for topic in ("actions", "timers", "instances"):
        world.produce(world.topics[topic], b"\xc3\x01nonsense", uuid.uuid4().hex.encode(), [("x", b"y")], 0)
        name, _ = world.letter(lambda m, topic=topic: m.header("sluice-origin-topic") == world.topics[topic])
        before = len(world.read(topic))
        row = world.redrive(name, code=1)[0]
        assert row["result"] == "refused" and re.search(r"order that is gone", row["text"]), row
        assert len(world.read(topic)) == before


def test_the_headers_of_a_producer_cannot_choose_where_a_letter_goes(world):
    command = json.dumps({"specversion": "1.0", "type": "io.sluice.start", "source": "/me", "id": uuid.uuid4().hex,
                          "data": {"workflow": "say", "deep": json.loads("[" * 40 + "]" * 40)}}).encode()
    forged = STRUCTURED + [("sluice-reason", b"forged"), ("sluice-namespace", b"other"), ("sluice-instance", b"i"), ("sluice-origin-topic",
                           world.topics["commands"].encode()), ("sluice-origin-partition", b"0"), ("sluice-origin-offset", b"0"), ("sluice-attempts", b"7")]
    name, _, key = world.refused(command, forged)
    shown = world.json("dead-letters", "show", name)[0]
    assert shown["origin-topic"] == world.topics["events"] and "nested" in shown["reason"] and "namespace" not in shown
    assert world.redrive(name)[0]["to"] == world.topics["events"]
    assert not world.with_key("commands", key) and len(world.with_key("events", key)) == 2


# --- the cause is mended ---

def test_a_refused_event_is_processed_once_after_the_limit_was_raised(world, letters):
    name, key, headers = letters["deep"].name, letters["deep"].key, letters["deep"].headers
    world.raised()
    before = world.with_key("events", key)
    rows = world.redrive(name, "--dry-run")
    assert rows == [{"letter": name, "result": "would-redrive", "to": world.topics["events"]}]
    assert world.redrive(name, "--dry-run") == rows, "a dry run is not remembered"
    assert len(world.with_key("events", key)) == len(before) == 1 and not counted(world, 10)

    done = world.ok("dead-letters", "redrive", name)
    assert re.search(r"LETTER\s+RESULT\s+TO", done.out) and re.search(re.escape(name) + r"\s+redriven\s+\S+events", done.out), done
    assert done.out.endswith("\n1 redriven\n"), done
    wait_for("the instance", lambda: counted(world, 10))
    first, again = world.with_key("events", key)
    assert (again.partition, again.value, again.key) == (2, first.value, first.key)
    assert again.raw_headers == headers + [("sluice-redriven", name.encode()), ("sluice-attempts", b"1")]

    row = world.redrive(name)[0]
    assert row["result"] == "redriven-before" and "--again" in row["text"]
    assert world.redrive(name, "--again")[0]["result"] == "redriven"
    # what was published to the same partition afterwards has been through: nothing else can still come
    world.publish("count.came", "/here", {"n": 11}, partition=2)
    wait_for("the last one", lambda: counted(world, 11))
    assert len(world.with_key("events", key)) == 3
    assert len(counted(world, 10)) == 1, "the same event does nothing twice"
    assert not [m for m in world.dead_letters() if m.key == key and m.header("sluice-attempts") != "1"]


def test_a_record_that_was_too_big_for_its_letter_is_read_again(world, letters):
    world.raised()
    big, gone = letters["big"], letters["gone"]
    row = world.redrive(big.name)[0]
    assert row["result"] == "redriven", row
    wait_for("the instance", lambda: counted(world, 20))
    assert counted(world, 20)[0]["output"] == {"n": 20, "size": 3000000}
    first, again = world.with_key("events", big.key)
    assert first.value == again.value == big.value and again.header("sluice-redriven") == big.name

    # retention took the original
    place = TopicPartition(world.topics["events"], 3, int(gone.record.header("sluice-origin-offset")) + 1)
    admin = AdminClient({"bootstrap.servers": world.kafka})
    for future in admin.delete_records([place]).values():
        future.result(30)
    row = world.redrive(gone.name, code=1)[0]
    assert row["result"] == "refused", row
    assert re.search(r"the original record \S+events/3@%d is gone: that partition holds" % (place.offset - 1), row["text"]), row
    assert "first 65536 of" in row["text"]


def test_a_refused_command_is_carried_out_once(world, letters):
    world.raised()
    name, key = letters["command"].name, letters["command"].key
    assert [r["result"] for r in world.redrive(name, name)] == ["redriven", "redriven-before"]
    wait_for("the instance", lambda: world.lifecycle("completed", "say"))
    # Kafka's answer to the first redrive was lost: a command is not sent again unasked
    notes = world.redis_prefix + ":redriven"
    note = json.loads(world.redis().hget(notes, name))
    world.redis().hset(notes, name, json.dumps(dict(note, state="sending")))
    row = world.redrive(name, code=1)[0]
    assert row["result"] == "refused" and "--again" in row["text"], row
    assert len(world.with_key("commands", key)) == 2 and len(world.lifecycle("completed", "say")) == 1


def test_what_a_full_inbox_refused_goes_to_its_instance_alone(world, full):
    world.raised()
    key, instance, event, name = full
    world.publish("full.a", "/x", pairid=key)
    wait_for("room", lambda: world.show(instance)["states"] == ["B3"])
    row = world.redrive(name)[0]
    assert (row["result"], row["to"]) == ("redriven", world.topics["events"])
    output = world.wait_status(instance, "completed")["output"]
    assert output == {"b1": {"n": 1}, "b2": {"n": 2}, "b3": {"n": 3}}
    again = next(m for m in world.events("full.b") if m.header("sluice-redriven"))
    assert again.event["workflowinstanceid"] == instance and again.event["id"] == event
    row = world.redrive(name, "--again", code=1)[0]
    assert row["result"] == "refused" and "has ended (completed)" in row["text"], row
    world.ok("purge", instance)
    row = world.redrive(name, "--again", code=1)[0]
    assert row["result"] == "refused" and "not known any more" in row["text"], row


def engine_letter(world, instance, event, reason="processing ended the process three times"):
    """A letter as the engine writes it about an event that it gave up."""
    key = uuid.uuid4().hex.encode()
    world.produce(world.topics["dead-letter"], json.dumps(event).encode(), key, STRUCTURED + [
        ("sluice-reason", reason.encode()), ("sluice-namespace", b"default"), ("sluice-instance", instance.encode()),
        ("sluice-origin-topic", world.topics["instances"].encode()), ("sluice-origin-partition", b"0"), ("sluice-origin-offset", b"5"),
        ("sluice-attempts", b"1")])
    return world.letter(lambda m: m.key == key)[0]


def test_what_the_engine_gave_up_goes_to_an_instance_that_lives(world):
    key, instance = uuid.uuid4().hex, "i" + uuid.uuid4().hex[:8]
    event = {"specversion": "1.0", "type": "flaky.go", "source": "/x", "id": uuid.uuid4().hex, "pairid": key, "data": {"n": 1}}
    world.ok("start", "flaky", "--id", instance, "--input", json.dumps({"pairid": key}))
    world.wait_status(instance, "faulted")
    name = engine_letter(world, instance, event)
    row = world.redrive(name, code=1)[0]
    assert row["result"] == "refused" and "sluice retry " + instance in row["text"], row
    world.ok("retry", instance)
    world.wait_status(instance, "waiting")
    assert world.redrive(name) == [{"letter": name, "result": "redriven", "to": world.topics["events"]}]
    assert world.wait_status(instance, "completed")["output"]["go"] == {"n": 1}

    # of a mailbox: it alone has not seen the event, so it goes to all as it did the first time
    event = dict(event, id=uuid.uuid4().hex, type="count.came", source="/here", data={"n": 30})
    name = engine_letter(world, "#0123456789abcdef0123456789abcdef", event)
    assert world.redrive(name)[0]["to"] == world.topics["events"]
    wait_for("the instance", lambda: counted(world, 30))
    # a join has forgotten that it refused the event, and its other workflows have taken it
    row = world.redrive(engine_letter(world, "#0123456789abcdef0123456789abcdef", event, "join-full"), code=1)[0]
    assert row["result"] == "refused" and "an id of its own" in row["text"], row


def test_letters_are_chosen_by_reason_and_topic(world):
    world.raised()
    marks = {"one": b"[1]", "two": json.dumps({"specversion": "7.0", "id": "x", "source": "/s", "type": "t"}).encode()}
    names = {}
    for mark, value in marks.items():
        names[mark], _, _ = world.refused(value, STRUCTURED)
    listed = {one["letter"] for one in world.json("dead-letters", "list", "--reason", "specversion")}
    assert names["two"] in listed and names["one"] not in listed
    rows = world.redrive("--reason", "specversion", "--topic", "*events", "--dry-run")
    assert names["two"] in [r["letter"] for r in rows] and names["one"] not in [r["letter"] for r in rows]
    assert world.redrive("--reason", "specversion", "--topic", "elsewhere") == []
    # all of them: the refused ones are told with their reason, the exit code says so; nothing is done in a dry run
    letters = len(world.dead_letters())
    rows = world.redrive("--all", "--dry-run", code=1)
    assert len(rows) == letters
    assert {r["result"] for r in rows} >= {"would-redrive", "redriven-before", "refused"}, rows
    assert all(r.get("text") for r in rows if r["result"] == "refused")
    done = world.cli("dead-letters", "redrive", "--all", "--dry-run")
    assert done.code == 1 and re.search(r"\d+ would be redriven, \d+ redriven before, \d+ refused\n$", done.out), done
    assert len(world.dead_letters()) == letters
