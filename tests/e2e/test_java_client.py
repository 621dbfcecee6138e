"""The CloudEvents project's Java client: it starts and wakes instances in both modes, and reads what Sluice publishes."""
import json
import subprocess
import uuid

import pytest

from support import HERE, World, wait_for

PATIENT = """
id: visit
name: visit
version: '1.0.0'
specVersion: '0.8'
start: In
events:
  - {name: In, type: visit.in, source: /door, correlation: [{contextAttributeName: patientId}]}
  - {name: Out, type: visit.out, source: /door, correlation: [{contextAttributeName: patientId}]}
  - {name: Done, type: visit.done, source: /house, kind: produced}
states:
  - name: In
    type: event
    onEvents: [{eventRefs: [In], eventDataFilter: {toStateData: '${ .in }'}}]
    transition: Out
  - name: Out
    type: event
    onEvents: [{eventRefs: [Out], eventDataFilter: {toStateData: '${ .out }'}}]
    end:
      produceEvents: [{eventRef: Done, data: '${ {name: .in.name, days: .out.days} }', contextAttributes: {ward: north}}]
"""


@pytest.fixture(scope="module")
def world():
    world = World("java", 1, 1, 1).start()
    world.deploy(PATIENT)
    yield world
    world.stop()


def java(world, *words, lines=()):
    # the first time it fetches its jars
    done = subprocess.run([str(HERE / "java" / "run.sh"), words[0], world.kafka, world.topics[words[1]], *words[2:]], text=True, timeout=180,
                          input="".join("\t".join(line) + "\n" for line in lines), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def event(kind, patient, data, partition=0, id=None):
    return [str(partition), id or uuid.uuid4().hex, kind, "/door", json.dumps(data, ensure_ascii=False), "patientid=" + patient]


def ended(world, patient):
    return [d["output"] for d in world.lifecycle("completed", "visit") if d["output"]["in"]["name"] == patient]


@pytest.mark.parametrize("first, second", [("structured", "binary"), ("binary", "structured")])
def test_java_events_start_and_wake_an_instance(world, first, second):
    name = "Jürgen-" + first
    java(world, "publish", "events", first, lines=[event("visit.in", name, {"name": name}, 0)])
    wait_for("the instance", lambda: [i for i in world.list(workflow="visit", status="waiting") if world.show(i["id"])["bindings"] == {"patientid": name}])
    java(world, "publish", "events", second, lines=[event("visit.out", name, {"days": 3}, 1)])
    output = wait_for("its end", lambda: ended(world, name))
    assert output == [{"in": {"name": name}, "out": {"days": 3}}]
    # both modes came as such
    records = [m for m in world.read("events") if name in json.dumps(m.event, ensure_ascii=False) or (m.header("ce_patientid") or "") == name]
    modes = ["binary" if m.header("ce_id") else "structured" for m in sorted(records, key=lambda m: m.time_ms) if (
        m.header("ce_type") or m.event.get("type")) in ("visit.in", "visit.out")]
    assert modes == [first, second]


def test_the_same_java_event_in_both_modes_starts_one_instance(world):
    ids = [uuid.uuid4().hex, uuid.uuid4().hex]
    lines = [event("visit.in", "Twice", {"name": "Twice"}, 2, ids[0]), event("visit.out", "Twice", {"days": 1}, 2, ids[1])]
    for mode in ("structured", "binary"):
        java(world, "publish", "events", mode, lines=lines)
    wait_for("its end", lambda: ended(world, "Twice"))
    java(world, "publish", "events", "binary", lines=lines + [event("visit.in", "After", {"name": "After"}, 2), event("visit.out", "After", {"days": 2}, 2)])
    wait_for("what came after", lambda: ended(world, "After"))
    assert len(ended(world, "Twice")) == 1


def test_java_reads_what_sluice_publishes(world):
    java(world, "publish", "events", "binary", lines=[event("visit.in", "Reader", {"name": "Reader"}), event("visit.out", "Reader", {"days": 4})])
    wait_for("its end", lambda: ended(world, "Reader"))
    done = wait_for("the event", lambda: [e for e in java(world, "consume", "events") if e["type"] == "visit.done" and e["data"]["name"] == "Reader"])
    assert len({e["id"] for e in done}) == 1
    instance = done[0]["subject"]
    assert done[0]["source"] == "/house" and done[0]["data"] == {"name": "Reader", "days": 4} and done[0]["ward"] == "north"
    assert (done[0]["originworkflowid"], done[0]["origininstanceid"], done[0]["patientid"]) == ("visit", instance, "Reader")
    life = [e for e in java(world, "consume", "lifecycle") if e.get("subject") == instance]
    assert {e["type"].split(".")[-2] for e in life} >= {"started", "completed"}, life
    assert all(e["specversion"] == "1.0" and e["id"] and e["source"] for e in life)
