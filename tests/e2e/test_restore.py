"""Redis restored from a backup taken mid-way, under services that go on: the log brings everything forward to the same outputs (R10).
oracle.py judges; SLUICE_SEED repeats the moments of a run."""
import os
import random
import shutil
import time

import pytest
import redis

from checks import settled
from killing import judge
from support import wait_for
from test_kill_series import RUNS, SEED, Load, Parts, ended, gone, now_ms, world_of

ANY_MS = 3600000  # all that was done since the backup may be done again, and the backup itself may have been behind


class Backups(Parts):
    """Of the Redis of these tests: its append only files, copied while it runs, and put back where it has stopped."""

    def data(self):
        return os.path.join(self.redis.folder, "redis-data", "appendonlydir")

    def take(self, name):
        client = self.client()
        client.config_set("auto-aof-rewrite-percentage", "0")  # the set of files must not change meanwhile
        shutil.copytree(self.data(), os.path.join(self.folder, name))
        return {"service": "restore", "time_ms": now_ms()}

    def restore(self, name, meanwhile=lambda: None):
        self.redis.stop()
        meanwhile()
        shutil.rmtree(self.data())
        shutil.copytree(os.path.join(self.folder, name), self.data())
        self.redis.start()

    def client(self):
        return redis.Redis.from_url(self.url, socket_timeout=10)


@pytest.fixture(scope="module")
def parts():
    made = Backups()
    yield made
    made.close()


def publish(world, kinds, numbers, what="start"):
    for n in numbers:
        for kind in kinds:
            run = "%s-%d" % (kind, n)
            data = {"run": run, "n": n} if what == "start" else {"add": 1000}
            world.publish("kill.start." + kind if what == "start" else "kill.go", "/test", data, id="%s-%s" % (what, run), runid=run, flush=False)
    assert world.producer.flush(30) == 0


def listed(world):
    """Status of every instance, as Redis has it."""
    return {i["id"]: i["status"] for i in world.list()}


def headers(world):
    """What the partitions have applied, and the timers that are set."""
    client, applied, timers = world.redis(), {}, []
    for key in client.scan_iter(world.redis_prefix + ":*", count=1000):
        kind = key.decode()[len(world.redis_prefix) + 1:].split(":", 1)[0]
        if kind in ("p", "tp"):
            applied[key.decode()] = int(client.hget(key, "applied") or -1)
        elif kind == "t" and client.type(key) == b"zset":
            timers += client.zrange(key, 0, -1)
    return applied, sorted(timers)


def same(world, before):
    """Everything is as it was; the partitions have applied at least as much."""
    (instances, (applied, timers)), (now_instances, (now_applied, now_timers)) = before, (listed(world), headers(world))
    return instances == now_instances and timers == now_timers and all(now_applied.get(p, -1) >= offset for p, offset in applied.items())


def test_a_quiet_system_comes_back_to_where_it_was(parts):
    """Nobody restarts, nothing new comes in: what the log holds beyond the backup is applied again by itself."""
    world = world_of(parts, "restore-quiet", group_session_timeout_ms=30000)
    try:
        pids = world.pids()
        publish(world, ("waiter", "mixed", "looper"), range(10))
        wait_for("waiting", lambda: len(world.list(workflow="waiter", status="waiting")) == 10 and
                 len(world.list(workflow="mixed", status="waiting")) == 10 and len(world.list(workflow="looper", status="completed")) == 10, 30)
        settled(world)
        kill = parts.take("quiet")
        # after the backup: some end, some come, all kinds
        publish(world, ("waiter", "mixed"), range(0, 10, 2), "go")
        publish(world, ("caller", "sleeper", "fork", "retrier"), range(10))
        publish(world, ("waiter", "mixed"), range(10, 20))
        wait_for("ended", lambda: len(world.lifecycle("completed")) == 60, 60, 0.3)
        wait_for("waiting", lambda: len(world.list(status="waiting")) == 30, 30)
        settled(world)
        before, calls = (listed(world), headers(world)), len(world.stub.calls())
        parts.restore("quiet")
        kill["until_ms"] = now_ms()
        wait_for("as it was", lambda: same(world, before), 30, 0.5)
        settled(world)
        assert same(world, before)
        assert world.pids() == pids and len(world.stub.calls()) == calls, "the executors remember what they called"
        publish(world, ("waiter", "mixed"), range(1, 10, 2), "go")
        publish(world, ("waiter", "mixed"), range(10, 20), "go")
        ended(world, 90)
        judge(world, [kill], 90, ANY_MS)
    finally:
        world.stop()


@pytest.mark.parametrize("restart", [False, True], ids=["running", "killed"])
def test_a_backup_taken_under_load_is_brought_forward(parts, restart):
    """Restored under load to a backup some seconds old, three times, the last time to the one before: 200 instances, exact. With
    `killed` no service survives, so that nobody remembers anything that is not in the backup or in the log."""
    rng = random.Random("%s-restore-%s" % (SEED, restart))
    print("SLUICE_SEED=%s" % SEED)
    world = world_of(parts, "restore-load", group_session_timeout_ms=30000)

    def kill_services():
        for name in world.names():
            wait_for("%s runs" % name, lambda n=name: world.pid(n) and not gone(world.pid(n)), 30)
            world.kill(name)
    try:
        load, kills = Load(world, rng, 26), []
        for turn in range(3):
            time.sleep(rng.uniform(1, 4))
            name = "load-%s-%d" % (restart, turn)
            kill = parts.take(name)
            time.sleep(rng.uniform(1, 4))
            if turn == 2:
                name, kill["time_ms"] = "load-%s-1" % restart, kills[1]["time_ms"]
            parts.restore(name, kill_services if restart else lambda: None)
            kill["until_ms"] = now_ms() + (8000 if restart else 0)
            kills.append(kill)
        load.finish()
        ended(world)
        figures = judge(world, kills, RUNS, ANY_MS)
        if not restart:
            assert figures.get("repeated calls", 0) == 0, figures
    finally:
        world.stop()


UNTOLD = """id: untold
version: '1.0.0'
specVersion: '0.8'
start: Wait
events: [{name: Go, type: untold.go, source: /test, correlation: [{contextAttributeName: orderid}]}]
states:
  - name: Wait
    type: event
    onEvents: [{eventRefs: [Go], eventDataFilter: {toStateData: '${ .go }'}}]
    end: true
"""


def test_who_waits_beyond_the_plans_is_known_to_routers_that_start_behind_an_older_store(parts):
    """Started by command they wait at their start event with no key (A169), of which neither the plans tell nor the restored store. The
    event is routed by coordinators that were all started after the restore, before the partitions are brought forward."""
    world = world_of(parts, "restore-untold", group_session_timeout_ms=6000)
    try:
        world.deploy(UNTOLD)
        parts.take("untold")
        for n in range(20):
            world.ok("start", "untold", "--id", "by-command-%d" % n)
        wait_for("waiting", lambda: len(world.list(workflow="untold", status="waiting")) == 20, 30)
        settled(world)

        def meanwhile():
            for name in world.names():
                world.kill(name)
            world.publish("untold.go", "/test", {"n": 1}, orderid="7")
        parts.restore("untold", meanwhile)
        # it also starts one of its own
        wait_for("told", lambda: len([d for d in world.lifecycle("completed", "untold") if d["output"]["go"] == {"n": 1}]) == 21, 60, 0.3)
    finally:
        world.stop()
