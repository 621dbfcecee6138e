"""Expressions that nothing can halt (R7): a named error soon, one restart of one coordinator, and nobody else notices."""
import re
import time

from support import World, wait_for

HEAD = """
id: {name}
name: {name}
version: '1.0.0'
specVersion: '0.8'
start: Begin
"""
COMPUTE = HEAD + """
states:
  - name: Begin
    type: inject
    data: {{ok: true}}
    stateDataFilter: {{output: '${{ {expression} }}'}}
    end: true
"""
# The same, started by an event: the expression runs in a local step behind a mailbox.
BY_EVENT = HEAD + """
events:
  - {{name: Start, type: budget.start, source: /test, correlation: [{{contextAttributeName: runid}}]}}
states:
  - name: Begin
    type: event
    onEvents: [{{eventRefs: [Start]}}]
    stateDataFilter: {{output: '${{ {expression} }}'}}
    end: true
"""
WAITER = HEAD + """
events:
  - {{name: Begin, type: budget.wait, source: /test, correlation: [{{contextAttributeName: runid}}]}}
  - {{name: Go, type: budget.go, source: /test, correlation: [{{contextAttributeName: runid}}]}}
states:
  - {{name: Begin, type: event, onEvents: [{{eventRefs: [Begin]}}], transition: Wait}}
  - {{name: Wait, type: event, onEvents: [{{eventRefs: [Go]}}], end: true}}
"""
LONG = '"a" * 1000000000'  # one instruction of libjq
NESTED = "reduce range(1000000) as $i (0; [.])"
WAITERS = 40
EXIT = 70


def restarts(world):
    return {name: len(re.findall(r" ended with ", world.log(name))) for name in world.names()}


def waiters(world, first, end):
    """Instances of all partitions."""
    for n in range(first, end):
        world.publish("budget.wait", "/test", runid="w%d" % n, flush=False)
    world.producer.flush(30)


def begin(world):
    world.start()
    world.deploy(WAITER.format(name="waiter"), COMPUTE.format(name="good", expression="{fine: .ok}"),
                 COMPUTE.format(name="long", expression=LONG), COMPUTE.format(name="nested", expression=NESTED),
                 BY_EVENT.format(name="longer", expression=LONG))
    waiters(world, 0, WAITERS)
    wait_for("waiters", lambda: len(world.list(workflow="waiter", status="waiting")) == WAITERS, 30)


def end(world, count):
    """The waiters, of all partitions, go on."""
    for n in range(count):
        world.publish("budget.go", "/test", runid="w%d" % n, flush=False)
    world.producer.flush(30)
    world.wait_ended("waiter", count)
    for p in range(8):
        left = [f for f in world.redis().hkeys(world.redis_prefix + ":p:{%d}" % p) if f == b"note" or f.startswith(b"proved:")]
        assert not left, (p, left)


def one_restart(world, before, pids):
    """Of one coordinator, by the watchdog; every other process is the one that it was."""
    after = restarts(world)
    changed = [name for name in after if after[name] != before[name]]
    assert len(changed) == 1 and changed[0].startswith("coordinator-") and after[changed[0]] == before[changed[0]] + 1, (before, after)
    now = world.pids()
    assert {n: p for n, p in now.items() if n not in changed} == {n: p for n, p in pids.items() if n not in changed}
    assert re.findall(r"ended with (\d+)", world.log(changed[0]))[-1] == str(EXIT)
    assert "exceeded its hard budget" in world.log(changed[0])


def test_one_instruction_that_never_ends_faults_its_instance_only():
    world = World("budget", executors=1, timers=1)
    world.endings.add(EXIT)
    try:
        begin(world)
        before, pids, since = restarts(world), world.pids(), time.monotonic()
        world.ok("start", "long", "--id", "bad-1")
        waiters(world, WAITERS, 2 * WAITERS)
        shown = world.wait_status("bad-1", "faulted", 20)
        took = time.monotonic() - since
        assert took < 10, "%.1f s" % took
        assert shown["error"]["code"] == "internal" and shown["error"]["title"] == "expression exceeded its hard budget", shown
        one_restart(world, before, pids)
        letter = world.wait_dead(lambda m: "hard budget" in (m.header("sluice-reason") or ""))
        assert letter.header("sluice-origin-topic") == world.topics["instances"]
        wait_for("all ready", world.ready, 30)

        # behind a mailbox, by an event: the same
        before, pids, since = restarts(world), world.pids(), time.monotonic()
        event = world.publish("budget.start", "/test", runid="bad-2")
        ended = world.wait_ended("longer", 1, "faulted", 20)
        took = time.monotonic() - since
        assert took < 10, "%.1f s" % took
        assert ended[0]["error"]["title"] == "expression exceeded its hard budget", ended
        one_restart(world, before, pids)
        assert world.wait_dead(lambda m: event.encode() in m.value)
        end(world, 2 * WAITERS)
    finally:
        world.stop()


def test_a_soft_budget_and_nesting_need_no_restart():
    world = World("nesting", executors=1, timers=1)
    try:
        begin(world)
        before, since = restarts(world), time.monotonic()
        world.ok("start", "nested", "--id", "deep")
        world.ok("start", "good", "--id", "fine")
        shown = world.wait_status("deep", "faulted", 20)
        assert time.monotonic() - since < 10
        assert shown["error"]["code"] == "expression", shown
        world.wait_status("fine", "completed")
        assert restarts(world) == before
        end(world, WAITERS)
    finally:
        world.stop()
