"""Stock clients: kcat, the CloudEvents SDK and fastavro publish in every mode; redeliveries; executors that share work."""
import io
import json
import pathlib
import subprocess
import uuid

import fastavro
import pytest
from cloudevents.core.bindings.kafka import KafkaMessage, from_kafka, to_binary, to_structured
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from support import ROOT, World, wait_for

GREET = """
id: greet
name: greet
version: '1.0.0'
specVersion: '0.8'
start: Greet
events:
  - {name: Asked, type: greet.asked, source: /people}
  - {name: Done, type: greet.done, source: /greeter, kind: produced}
functions:
  - {name: mirror, type: custom, operation: POST STUB/mirror}
states:
  - name: Greet
    type: event
    onEvents:
      - eventRefs: [Asked]
        actions:
          - name: mirror
            functionRef: {refName: mirror, arguments: {text: '${ "Hello, " + .name }', n: '${ .n }'}}
            actionDataFilter: {toStateData: '${ .answer }'}
    end:
      produceEvents:
        - {eventRef: Done, data: '${ {n: .n, text: .answer.text} }'}
"""

# One patient: the first event starts, the second goes to the same instance, whoever publishes them.
PATIENT = """
id: patient
name: patient
version: '1.0.0'
specVersion: '0.8'
start: In
events:
  - {name: In, type: patient.in, source: /door, correlation: [{contextAttributeName: patientId}]}
  - {name: Out, type: patient.out, source: /door, correlation: [{contextAttributeName: patientId}]}
functions:
  - {name: mirror, type: custom, operation: POST STUB/mirror?patient=1}
states:
  - name: In
    type: event
    onEvents:
      - eventRefs: [In]
        eventDataFilter: {toStateData: '${ .in }'}
        actions:
          - name: admit
            functionRef: {refName: mirror, arguments: {admit: '${ .in.name }'}}
            actionDataFilter: {toStateData: '${ .admitted }'}
    transition: Out
  - name: Out
    type: event
    onEvents:
      - eventRefs: [Out]
        eventDataFilter: {toStateData: '${ .out }'}
    end: true
"""
SCHEMA = fastavro.parse_schema(json.loads((ROOT / "proto" / "cloudevents.avsc").read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def world():
    world = World("clients")
    world.set(topics_events="%s=default,%smore=default" % (world.topics["events"], world.prefix))
    world.topics["more"] = world.prefix + "more"
    world.start()
    world.deploy(GREET, PATIENT)
    yield world
    world.stop()


def kcat(world, partition, value, *headers):
    words = ["kcat", "-P", "-b", world.kafka, "-t", world.topics["events"], "-p", str(partition)]
    for header in headers:
        words += ["-H", header]
    subprocess.run(words, input=value.encode(), check=True, timeout=30)


def kcat_binary(world, partition, n):
    kcat(world, partition, json.dumps({"name": "kcat", "n": n}), "ce_specversion=1.0", "ce_type=greet.asked", "ce_source=/people",
         "ce_id=k-%d" % n, "content-type=application/json")


def kcat_structured(world, partition, n):
    event = {"specversion": "1.0", "type": "greet.asked", "source": "/people", "id": "k-%d" % n, "data": {"name": "kcat", "n": n}}
    kcat(world, partition, json.dumps(event), "content-type=application/cloudevents+json; charset=UTF-8")


def sdk_event(n):
    return CloudEvent({"type": "greet.asked", "source": "/people", "id": "s-%d" % n, "datacontenttype": "application/json", "color": "red"},
                      {"name": "SDK", "n": n})


def sdk_send(world, partition, message):
    world.produce(world.topics["events"], message.value, message.key, list(message.headers.items()), partition)


def sdk_binary(world, partition, n):
    sdk_send(world, partition, to_binary(sdk_event(n), JSONFormat()))


def sdk_structured(world, partition, n):
    sdk_send(world, partition, to_structured(sdk_event(n), JSONFormat()))


def avro(world, partition, n):
    """Data as a tree of Avro values, as the CloudEvents schema has it."""
    out = io.BytesIO()
    attributes = {"specversion": "1.0", "type": "greet.asked", "source": "/people", "id": "a-%d" % n, "flag": True, "number": 7}
    fastavro.schemaless_writer(out, SCHEMA, {"attribute": attributes, "data": {"name": "Avro", "n": n}})
    world.produce(world.topics["events"], out.getvalue(), headers=[("content-type", b"application/cloudevents+avro")], partition=partition)


def avro_bytes(world, partition, n):
    """Data as JSON in bytes."""
    out = io.BytesIO()
    attributes = {"specversion": "1.0", "type": "greet.asked", "source": "/people", "id": "b-%d" % n, "datacontenttype": "application/json"}
    fastavro.schemaless_writer(out, SCHEMA, {"attribute": attributes, "data": json.dumps({"name": "Avro", "n": n}).encode()})
    world.produce(world.topics["events"], out.getvalue(), headers=[("content-type", b"application/cloudevents+avro")], partition=partition)


CLIENTS = {kcat_binary: "kcat", kcat_structured: "kcat", sdk_binary: "SDK", sdk_structured: "SDK", avro: "Avro", avro_bytes: "Avro"}


def test_every_client_mode_and_partition_starts_an_instance_with_the_right_output(world):
    wanted = {}
    for i, (client, name) in enumerate(CLIENTS.items()):
        for partition in range(4):
            n = 100 * (i + 1) + partition
            client(world, partition, n)
            wanted[n] = {"name": name, "n": n, "answer": {"text": "Hello, " + name, "n": n}}
    ended = world.wait_ended("greet", len(wanted))
    assert {data["output"]["n"]: data["output"] for data in ended} == wanted
    assert len(ended) == len(wanted)
    # what the workflows publish is read by the SDK
    published = {}
    for message in wait_for("published events", lambda: (lambda m: m if len(m) >= len(wanted) else None)(world.events("greet.done"))):
        event = from_kafka(KafkaMessage(message.headers, message.key, message.value), JSONFormat())
        assert event.get_type() == "greet.done" and event.get_source() == "/greeter" and event.get_specversion() == "1.0"
        assert event.get_extension("originworkflowid") == "greet"
        assert event.get_extension("origininstanceid") == event.get_subject()
        assert not event.get_extension("workflowinstanceid")
        published[event.get_data()["n"]] = event.get_data()
    assert published == {n: {"n": n, "text": w["answer"]["text"]} for n, w in wanted.items()}
    # two of every service took part
    for part in ("coordinator", "executor", "timer"):
        assert all(world.metric(name, "partitions_owned") > 0 for name in world.names(part)), part


def test_a_redelivered_event_starts_nothing_twice(world):
    mark = uuid.uuid4().hex[:6]
    before = len(world.lifecycle("started", "greet"))

    def uncorrelated(topic, partition):
        world.publish("greet.asked", "/people", {"name": "again", "n": 1}, id="again-" + mark, partition=partition, topic=topic)

    def patient(kind, partition, topic=None):
        world.publish("patient." + kind, "/door", {"name": "Ann"}, id="%s-%s" % (kind, mark), patientid=mark, partition=partition, topic=topic)

    uncorrelated(None, 0)
    patient("in", 0)
    for topic, partition in ((None, 0), (None, 3), (world.topics["more"], 1)):
        uncorrelated(topic, partition)
        patient("in", partition, topic)
    wait_for("the call of the first", lambda: [c for c in world.stub.calls("/mirror") if c["query"].get("patient")])
    for topic, partition in ((None, 1), (None, 1), (world.topics["more"], 2)):
        patient("out", partition, topic)
    world.wait_ended("patient", 1)
    for topic, partition in ((None, 2), (world.topics["more"], 3)):  # the instance has ended: still the same event
        patient("in", partition, topic)
        uncorrelated(topic, partition)
    # what was published to the same partitions afterwards has been through: nothing else can still come
    for partition in range(4):
        for topic in (None, world.topics["more"]):
            world.publish("greet.asked", "/people", {"name": "last", "n": 2}, partition=partition, topic=topic)
    wait_for("the last ones", lambda: sum(d["output"]["n"] == 2 for d in world.lifecycle("completed", "greet")) == 8)
    wait_for("no event on its way", lambda: not any(m for m in [world.offsets("coordinator-route", "events")] if m[0] != m[1]))
    assert len(world.lifecycle("started", "greet")) == before + 1 + 8
    assert [d["output"] for d in world.lifecycle("completed", "patient")] == \
        [{"in": {"name": "Ann"}, "admitted": {"admit": "Ann"}, "out": {"name": "Ann"}}]
    assert len(world.lifecycle("started", "patient")) == 1
    assert len([c for c in world.stub.calls("/mirror") if c["query"].get("patient")]) == 1


def test_two_executors_share_the_work(world):
    before = {name: world.metric(name, "calls_total", result="ok") for name in world.names("executor")}
    done = len(world.lifecycle("completed", "greet"))
    for n in range(80):
        world.publish("greet.asked", "/people", {"name": "many", "n": 1000 + n}, flush=False)
    world.producer.flush(30)
    world.wait_ended("greet", done + 80)
    share = {name: world.metric(name, "calls_total", result="ok") - before[name] for name in before}
    assert sum(share.values()) == 80, share
    assert min(share.values()) >= 10, share
    keys = [c["key"] for c in world.stub.calls("/mirror")]
    assert len(keys) == len(set(keys)), "a call was made twice"
