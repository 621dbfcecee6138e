"""Events that come before somebody waits for them: early events, the inbox, and the next instance of a correlated start (A173)."""
import io
import json
import time
import uuid

import fastavro
import pytest

from support import ROOT, World, wait_for

ORDER = """
id: order
name: order
version: '1.0.0'
specVersion: '0.8'
start: Placed
timeouts: {actionExecTimeout: PT1M}
events:
  - {name: Placed, type: order.placed, source: /shop, correlation: [{contextAttributeName: orderid}]}
  - {name: Paid, type: order.paid, source: /bank, correlation: [{contextAttributeName: orderid}]}
  - {name: Done, type: order.done, source: /order, kind: produced}
functions:
  - {name: hold, type: custom, operation: POST STUB/hold/order}
states:
  - name: Placed
    type: event
    onEvents: [{eventRefs: [Placed], eventDataFilter: {toStateData: '${ .placed }'}}]
    transition: Stock
  - name: Stock
    type: operation
    actions:
      - functionRef: {refName: hold, arguments: {n: '${ .placed.n }'}}
        actionDataFilter: {useResults: false}
    transition: Paid
  - name: Paid
    type: event
    onEvents: [{eventRefs: [Paid], eventDataFilter: {toStateData: '${ .paid }'}}]
    end:
      produceEvents: [{eventRef: Done, data: '${ {placed: .placed.n, paid: .paid.n} }'}]
"""
WINDOW_S = 4


@pytest.fixture(scope="module")
def world():
    world = World("early", event_mode="avro", correlation_early_window_ms=WINDOW_S * 1000).start()
    world.deploy(ORDER)
    yield world
    world.stop()


def placed(world, key, n, **more):
    return world.publish("order.placed", "/shop", {"n": n}, orderid=key, **more)


def paid(world, key, n, **more):
    return world.publish("order.paid", "/bank", {"n": n}, orderid=key, **more)


def outputs(world, key):
    """(placed, paid) of the completed orders of this key, in order of their end."""
    ended = [d for d in world.lifecycle("completed", "order") if d["output"]["placed"].get("key", key) == key]
    return [(d["output"]["placed"]["n"], d["output"]["paid"]["n"]) for d in sorted(ended, key=lambda d: d["endedAt"])]


def instances(world):
    return {one["id"]: one["status"] for one in world.list(workflow="order")}


def test_an_event_in_a_call_goes_to_the_inbox_and_satisfies_the_wait_at_once(world):
    before, key = set(instances(world)), uuid.uuid4().hex
    placed(world, key, 1)
    wait_for("the call", lambda: any(c["body"] == {"n": 1} for c in world.stub.calls("/hold/order")))
    instance = (set(instances(world)) - before).pop()
    paid(world, key, 11)
    wait_for("the inbox", lambda: world.show(instance)["inbox"] == 1, 10)
    assert world.show(instance)["states"] == ["Stock"]
    world.stub.get("/open/order")
    shown = world.wait_status(instance, "completed", 10)
    assert shown["output"] == {"placed": {"n": 1}, "paid": {"n": 11}} and shown["inbox"] == 0


def test_an_event_that_overtakes_its_start_is_kept_and_given_to_the_instance(world):
    for partition in range(4):  # each from another partition than its start
        key, n = uuid.uuid4().hex, 100 + partition
        event = paid(world, key, n + 1000, partition=partition)
        wait_for("early", lambda: '"early"' in world.cli("why", event, "--output", "json").out, 10)
        placed(world, key, n, partition=(partition + 1) % 4)
        wait_for("the order", lambda: (n, n + 1000) in outputs(world, key), 10)


def test_an_early_event_is_forgotten_after_its_window(world):
    before, key = set(instances(world)), uuid.uuid4().hex
    paid(world, key, 21)
    time.sleep(WINDOW_S + 1)
    placed(world, key, 2)
    wait_for("the instance waits", lambda: "waiting" in [s for i, s in instances(world).items() if i not in before], 10)
    time.sleep(0.5)
    instance = (set(instances(world)) - before).pop()
    assert world.show(instance)["states"] == ["Paid"]
    paid(world, key, 22)
    assert world.wait_status(instance, "completed", 10)["output"] == {"placed": {"n": 2}, "paid": {"n": 22}}


def test_a_second_start_event_goes_to_the_living_instance_and_starts_the_next_when_it_ends(world):
    before, key = set(instances(world)), uuid.uuid4().hex
    placed(world, key, 31)
    wait_for("the first", lambda: len(set(instances(world)) - before) == 1, 10)
    first = (set(instances(world)) - before).pop()
    world.wait_status(first, "waiting", 10)
    placed(world, key, 32)
    placed(world, key, 33)
    wait_for("in the inbox", lambda: world.show(first)["inbox"] == 2, 10)
    assert len(set(instances(world)) - before) == 1
    paid(world, key, 41)
    assert world.wait_status(first, "completed", 10)["output"] == {"placed": {"n": 31}, "paid": {"n": 41}}
    for n, pay in ((32, 42), (33, 43)):
        # the next takes the oldest and leaves the rest in its inbox
        wait_for("the next", lambda: [i for i, s in instances(world).items() if i not in before and s == "waiting"], 10)
        paid(world, key, pay)
        wait_for("order %d" % n, lambda: (n, pay) in outputs(world, key), 10)
    assert len(set(instances(world)) - before) == 3


def test_an_order_that_is_paid_twice_takes_the_first(world):
    key = uuid.uuid4().hex
    placed(world, key, 51)
    paid(world, key, 61)
    wait_for("the order", lambda: (51, 61) in outputs(world, key), 10)
    paid(world, key, 62)
    time.sleep(0.5)
    assert [o for o in outputs(world, key) if o[0] == 51] == [(51, 61)]


def test_published_events_are_read_as_avro(world):
    """By fastavro with the CloudEvents project's schema."""
    schema = fastavro.parse_schema(json.loads((ROOT / "proto" / "cloudevents.avsc").read_text(encoding="utf-8")))
    found = {}
    done = outputs(world, "")
    for message in world.read("events"):
        if message.header("content-type") != "application/cloudevents+avro":
            continue
        event = fastavro.schemaless_reader(io.BytesIO(message.value), schema)
        attributes = event["attribute"]
        assert attributes["type"] == "order.done" and attributes["source"] == "/order" and attributes["specversion"] == "1.0"
        assert attributes["orderid"] and attributes["originworkflowid"] == "order" and attributes["datacontenttype"] == "application/json"
        data = json.loads(event["data"]) if isinstance(event["data"], bytes) else event["data"]
        found[attributes["id"]] = (data["placed"], data["paid"])
    assert done and sorted(found.values()) == sorted(done)


def test_a_partition_that_is_read_late_is_told():
    world = World("late", 1, 1, 1, correlation_early_window_ms="1s")
    try:
        world.start()
        world.services("stop")
        world.publish("nobody.waits", "/test", partition=0)
        time.sleep(2)
        world.services("start")
        wait_for("the warning", lambda: "events are read" in world.log("coordinator-1") and "correlation.early_window_ms (1.0 s)" in
                 world.log("coordinator-1"), 10)
        world.publish("nobody.waits", "/test", partition=0)
        wait_for("the end of it", lambda: "in time again" in world.log("coordinator-1"), 10)
        assert world.metric("coordinator-1", "route_lag_seconds_count") >= 2
    finally:
        world.stop()
