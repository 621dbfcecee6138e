"""What the tests that kill have in common: the workflows, whose outputs tell what happened to them, and the judge."""
import json
import os
import subprocess
import sys

from support import HERE

HEAD = """
id: {kind}
name: {kind}
version: '1.0.0'
specVersion: '0.8'
start: Begin
timeouts: {{actionExecTimeout: PT30M}}
events:
  - {{name: Start, type: kill.start.{kind}, source: /test{correlation}}}
  - {{name: Go, type: kill.go, source: /test, correlation: [{{contextAttributeName: runid}}]}}
  - {{name: Done, type: kill.done, source: /{kind}, kind: produced}}
functions:
  - {{name: hold, type: custom, operation: POST STUB/hold/gate}}
  - {{name: slow, type: custom, operation: 'POST STUB/slow?ms=700'}}
  - {{name: flaky, type: custom, operation: 'POST STUB/flaky?fail=1'}}
  - {{name: mirror, type: custom, operation: POST STUB/mirror}}
  - {{name: negate, type: expression, operation: '{{right: (0 - .n)}}'}}
errors: [{{name: busy, code: '503'}}]
retries: [{{name: soon, delay: PT0.5S, maxAttempts: 3}}]
states:
  - {{name: Begin, type: event, onEvents: [{{eventRefs: [Start]}}], transition: {first}}}
"""
KEYED = ", correlation: [{contextAttributeName: runid}]"
END = "{produceEvents: [{eventRef: Done, data: '${ . }'}]}"


def definition(kind, first, states, correlation=""):
    return HEAD.format(kind=kind, correlation=correlation, first=first) + states + "    end: " + END


def call(function, part, argument):
    return "functionRef: {refName: %s, arguments: {run: '${ .run }', part: %s, %s}}" % (function, part, argument)


def workflows(function, nap, short_nap):
    """One that waits, one that calls `function`, one that sleeps, one that does it all, and one that does two things at a time."""
    return {
        "waiter": definition("waiter", "Wait", """
  - name: Wait
    type: event
    onEvents: [{eventRefs: [Go], eventDataFilter: {toStateData: '${ .go }'}}]
    stateDataFilter: {output: '${ {run: .run, sum: (.n + .go.add)} }'}
""", KEYED),
        "caller": definition("caller", "Call", """
  - name: Call
    type: operation
    actions:
      - """ + call(function, "double", "double: '${ .n * 2 }'") + """
        actionDataFilter: {results: '${ {double: .double} }'}
    stateDataFilter: {output: '${ {run: .run, double: .double} }'}
"""),
        "sleeper": definition("sleeper", "Sleep", """
  - {name: Sleep, type: sleep, duration: %s, transition: After}
  - name: After
    type: inject
    data: {}
    stateDataFilter: {output: '${ {run: .run, triple: (.n * 3)} }'}
""" % nap),
        # a callback that waits for its event with a timeout, then calls in parallel
        "mixed": definition("mixed", "Ask", """
  - name: Ask
    type: callback
    action:
      """ + call(function, "ask", "asked: '${ .n }'") + """
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
      - """ + call("mirror", "each", "square: '${ $item * $item }'") + """
        actionDataFilter: {results: '${ {square: .square} }'}
    stateDataFilter: {output: '${ del(.items) }'}
""", KEYED),
        # one branch in a call, one on a timer
        "fork": definition("fork", "Fork", """
  - name: Fork
    type: parallel
    branches:
      - name: left
        actions:
          - """ + call(function, "left", "left: '${ .n }'") + """
            actionDataFilter: {results: '${ {left: .left} }', toStateData: '${ .left }'}
      - name: right
        actions:
          - functionRef: {refName: negate}
            sleep: {before: """ + short_nap + """}
            actionDataFilter: {toStateData: '${ .right }'}
    stateDataFilter: {output: '${ {run: .run, left: .left, right: .right} }'}
"""),
    }


def judge(world, kills, runs, slack_ms=300):
    """The figures of oracle.py, which must have found nothing. slack_ms: between an answer on the wire and its result in Kafka."""
    kills_file = os.path.join(world.dir, "kills.json")
    with open(kills_file, "w", encoding="ascii") as out:
        json.dump(kills, out)
    command = [sys.executable, str(HERE / "oracle.py"), "--kafka", world.kafka, "--events", world.topics["events"], "--lifecycle",
               world.topics["lifecycle"], "--stub-log", world.stub.log, "--kills", kills_file, "--redis", world.redis_url,
               "--redis-prefix", world.redis_prefix, "--slack-ms", str(slack_ms)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    report = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    assert done.returncode == 0, (report.get("problems", [])[:10], report.get("figures"), done.stderr[-2000:])
    assert report["figures"]["runs"] == report["figures"]["instances"] == runs, report
    assert not world.dead_letters(), [(m.header("sluice-reason"), m.value[:300]) for m in world.dead_letters()[:5]]
    print(json.dumps(report["figures"]))
    return report["figures"]
