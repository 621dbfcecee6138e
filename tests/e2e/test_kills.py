"""kill -9 of coordinator, executor and timer under 200 running instances; oracle.py judges what came of them."""
import json
import os
import subprocess
import sys
import time

from support import HERE, World, wait_for

HEAD = """
id: {kind}
name: {kind}
version: '1.0.0'
specVersion: '0.8'
start: Begin
timeouts: {{actionExecTimeout: PT2M}}
events:
  - {{name: Start, type: kill.start.{kind}, source: /test{correlation}}}
  - {{name: Go, type: kill.go, source: /test, correlation: [{{contextAttributeName: runid}}]}}
  - {{name: Done, type: kill.done, source: /{kind}, kind: produced}}
functions:
  - {{name: hold, type: custom, operation: POST STUB/hold/gate}}
  - {{name: mirror, type: custom, operation: POST STUB/mirror}}
states:
"""
KEYED = ", correlation: [{contextAttributeName: runid}]"
END = "{produceEvents: [{eventRef: Done, data: '${ %s }'}]}"
BEGIN = "  - {name: Begin, type: event, onEvents: [{eventRefs: [Start]}], transition: %s}\n"


def definition(kind, states, correlation=""):
    return HEAD.format(kind=kind, correlation=correlation) + states


WORKFLOWS = [
    definition("waiter", BEGIN % "Wait" + """
  - name: Wait
    type: event
    onEvents: [{eventRefs: [Go], eventDataFilter: {toStateData: '${ .go }'}}]
    stateDataFilter: {output: '${ {run: .run, sum: (.n + .go.add)} }'}
    end: """ + END % ".", KEYED),
    definition("caller", BEGIN % "Call" + """
  - name: Call
    type: operation
    actions:
      - functionRef: {refName: hold, arguments: {run: '${ .run }', part: double, double: '${ .n * 2 }'}}
        actionDataFilter: {results: '${ {double: .double} }'}
    stateDataFilter: {output: '${ {run: .run, double: .double} }'}
    end: """ + END % "."),
    definition("sleeper", BEGIN % "Sleep" + """
  - {name: Sleep, type: sleep, duration: PT14S, transition: After}
  - name: After
    type: inject
    data: {}
    stateDataFilter: {output: '${ {run: .run, triple: (.n * 3)} }'}
    end: """ + END % "."),
    # a callback that waits for its event with a timeout, then calls in parallel
    definition("mixed", BEGIN % "Ask" + """
  - name: Ask
    type: callback
    action:
      functionRef: {refName: hold, arguments: {run: '${ .run }', part: ask, asked: '${ .n }'}}
      actionDataFilter: {results: '${ {asked: .asked} }'}
    eventRef: Go
    eventDataFilter: {toStateData: '${ .go }'}
    timeouts: {eventTimeout: PT10M}
    stateDataFilter: {output: '${ {run: .run, asked: .asked, told: (.n + .go.add), items: [.n, .n + 1, .n + 2]} }'}
    transition: Each
  - name: Each
    type: foreach
    inputCollection: ${ .items }
    iterationParam: item
    outputCollection: ${ .squares }
    mode: parallel
    actions:
      - functionRef: {refName: mirror, arguments: {run: '${ .run }', part: each, square: '${ $item * $item }'}}
        actionDataFilter: {results: '${ {square: .square} }'}
    stateDataFilter: {output: '${ del(.items) }'}
    end: """ + END % ".", KEYED),
    # one branch in a call, one on a timer
    definition("fork", BEGIN % "Fork" + """
  - name: Fork
    type: parallel
    branches:
      - name: left
        actions:
          - functionRef: {refName: hold, arguments: {run: '${ .run }', part: left, left: '${ .n }'}}
            actionDataFilter: {results: '${ {left: .left} }', toStateData: '${ .left }'}
      - name: right
        actions:
          - functionRef: {refName: negate}
            sleep: {before: PT14S}
            actionDataFilter: {toStateData: '${ .right }'}
    stateDataFilter: {output: '${ {run: .run, left: .left, right: .right} }'}
    end: """ + END % "."),
]
NEGATE = "  - {name: negate, type: expression, operation: '{right: (0 - .n)}'}\nstates:\n"
EACH = 40


def start(world, kind, n, partition=-1):
    run = "%s-%d" % (kind, n)
    world.publish("kill.start." + kind, "/test", {"run": run, "n": n}, id="start-" + run, runid=run, partition=partition, flush=False)


def go(world, kind, n):
    run = "%s-%d" % (kind, n)
    world.publish("kill.go", "/test", {"add": 1000}, id="go-" + run, runid=run, flush=False)


def timers(world):
    client = world.redis()
    return sum(client.zcard(key) for key in client.scan_iter(world.redis_prefix + ":t:*", count=1000) if client.type(key) == b"zset")


def held(world):
    return len(world.stub.calls("/hold/gate")) - sum(1 for e in world.stub.entries() if e.get("done") and e["path"] == "/hold/gate")


def waiting(world):
    return len(world.list(workflow="waiter", status="waiting"))


def test_a_kill_of_every_service_loses_nothing_and_doubles_nothing():
    world = World("kills", stub_ends=True, event_mode="binary")
    world.endings.add(137)
    try:
        world.start()
        world.deploy(*[w if "id: fork" not in w else w.replace("states:\n", NEGATE, 1) for w in WORKFLOWS])
        kinds = ["sleeper", "fork", "waiter", "caller", "mixed"]
        for n in range(EACH):
            for kind in kinds:
                start(world, kind, n)
        world.producer.flush(30)
        # at the kill: who waits, who is in a call, who is on a timer
        wait_for("calls held", lambda: held(world) >= 3 * EACH, 20)
        wait_for("waiting", lambda: waiting(world) >= EACH, 20)
        wait_for("timers", lambda: timers(world) >= 3 * EACH, 20)  # sleepers, forks, and the time-outs of the callbacks
        before = world.pids()
        victims = ["coordinator-1", "executor-1", "timer-1"]
        counts = {"waiting": waiting(world), "held": held(world), "timers": timers(world) - EACH}
        assert min(counts.values()) >= 20, counts
        kills = []
        for victim in victims:
            world.kill(victim)
            kills.append({"service": victim, "time_ms": int(time.time() * 1000)})
        # in the outage: some go on, some start events come again
        for n in range(0, EACH, 2):
            go(world, "waiter", n)
            start(world, "caller", n)
            start(world, "waiter", n, n % 4)
        world.producer.flush(30)
        wait_for("all ready again", lambda: all(world.pid(v) not in (0, before[v]) for v in victims) and world.ready(), 30)
        world.stub.get("/open/gate")
        for n in range(EACH):
            go(world, "mixed", n)
            go(world, "waiter", n)  # every other one comes again
        world.producer.flush(30)
        wait_for("all ended", lambda: len(world.lifecycle("completed")) >= 5 * EACH, 60, 0.5)
        assert {v: p for v, p in world.pids().items() if v not in victims} == {v: p for v, p in before.items() if v not in victims}
        judge(world, kills)
    finally:
        world.stop()


def judge(world, kills):
    kills_file = os.path.join(world.dir, "kills.json")
    with open(kills_file, "w", encoding="ascii") as out:
        json.dump(kills, out)
    command = [sys.executable, str(HERE / "oracle.py"), "--kafka", world.kafka, "--events", world.topics["events"], "--lifecycle",
               world.topics["lifecycle"], "--stub-log", world.stub.log, "--kills", kills_file, "--redis", world.redis_url,
               "--redis-prefix", world.redis_prefix]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    report = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    print(done.stdout, done.stderr)
    assert done.returncode == 0, (report.get("problems", [])[:10], report.get("figures"), done.stderr[-2000:])
    assert report["figures"]["runs"] == report["figures"]["instances"] == 5 * EACH, report
