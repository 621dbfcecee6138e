"""What a world must be like when all is quiet: worked off, one id one content, nothing left behind."""
import json
import time

from oracle import Oracle


def unsettled(world):
    """What Kafka holds that is not worked off yet (a text), or where all topics end (a dict)."""
    at = {}
    for group, topics in (("coordinator-route", ["events", "commands"] + (["more"] if "more" in world.topics else [])),
                          ("coordinator-own", ["instances"]), ("executor", ["actions"]), ("timer", ["timers"])):
        for topic in topics:
            offsets, at[topic] = world.offsets(group, topic)
            for p, end in at[topic].items():
                if end and offsets[p] != end:
                    return "%s/%d: %d of %d" % (topic, p, offsets[p], end)
    outbox = sum(world.metric(name, "outbox_records") for name in world.names("coordinator"))
    return "%d records of outboxes" % outbox if outbox else at


def settled(world, timeout=60):
    """Until everything that is in Kafka is worked off, and nothing new comes of it."""
    until, before, now = time.monotonic() + timeout, None, "?"
    while now != before or isinstance(now, str):
        assert time.monotonic() < until, "not worked off within %g s: %s" % (timeout, now)
        before, now = now, unsettled(world)
        time.sleep(0.2)


def nothing_left(world):
    """No instance lives, nobody is subscribed, no timer is set, nothing was given up."""
    oracle = Oracle()
    oracle.leftovers(world.redis(), world.redis_prefix)
    oracle.lost(world.redis(), world.redis_prefix)
    assert not oracle.problems, oracle.problems[:10]
    assert not world.dead_letters(), [(m.header("sluice-reason"), m.value[:300]) for m in world.dead_letters()[:5]]


def early(world):
    """Ids of the events that mailboxes keep for somebody who may come."""
    client, found = world.redis(), []
    for key in client.scan_iter(world.redis_prefix + ":m:*", count=1000):
        found += [json.loads(value)["event"]["id"] for field, value in client.hgetall(key).items() if field.startswith(b"e:")]
    return found


def subscribed(world, mark):
    """Subscriptions at the mailboxes whose home begins so: '@' those of one partition, 'm' those of a key."""
    client, found = world.redis(), 0
    for key in client.scan_iter(world.redis_prefix + ":m:*", count=1000):
        if key.decode().split("~", 1)[1].startswith(mark):
            found += sum(field.startswith(b"s:") for field in client.hkeys(key))
    return found


def answers(world):
    """By command: what was answered, each different answer once."""
    found = {}
    for message in world.read("lifecycle"):
        event = message.event
        if event.get("type") == "io.sluice.answer":
            answer = (event["data"]["ok"], None if event["data"]["ok"] else event["data"].get("reason"))
            if answer not in found.setdefault(event["commandid"], []):
                found[event["commandid"]].append(answer)
    return found


def facts(world):
    """What others have seen of this world, each thing by its id; an id with two contents fails here."""
    found = {}
    for event in (message.event for message in world.read("lifecycle")):
        if event["type"] == "io.sluice.answer":  # its time is that of the answer, and a deployment once more is "unchanged"
            event = {"id": event["id"], "data": dict(event["data"], reason=None if event["data"]["ok"] else event["data"].get("reason"))}
        assert found.setdefault(event["id"], event) == event, "one id, one content: %s, %s" % (found[event["id"]], event)
    calls = sorted((c["key"], json.dumps(c["body"])) for c in world.stub.calls() if c["key"])
    return set(found), answers(world), calls
