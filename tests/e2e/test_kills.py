"""kill -9 of coordinator, executor and timer under 200 running instances; oracle.py judges what came of them."""
import time

from killing import judge, workflows
from support import World, wait_for

# whoever was called or sleeps is still there at the kills
WORKFLOWS = workflows("hold", "PT14S", "PT14S")
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
        world.deploy(*WORKFLOWS.values())
        kinds = ["sleeper", "fork", "waiter", "caller", "mixed"]  # the naps first
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
        judge(world, kills, len(kinds) * EACH)
    finally:
        world.stop()
