"""100 000 timers: the timer service starts soon, none is lost, and those that are due go out on time."""
import os
import subprocess
import time

from support import BIN, World, wait_for
from test_timing import Probe, ms

# The claim is that of a release build on a machine of its own (SLUICE_BIN=build/release/bin tests/e2e/run.sh -k timers -s prints the numbers);
# a sanitizer build on a busy one gets more.
COUNT, START_MS = 100000, 5000
SLOW = 6
NAP = """
id: nap
name: nap
version: '1.0.0'
specVersion: '0.8'
start: Nap
states:
  - {name: Nap, type: sleep, duration: SECONDS, transition: Up}
  - {name: Up, type: inject, data: {}, end: true}
"""


class Timer:
    """The timer service as a process of ours: started and killed when we say so."""

    def __init__(self, world):
        self.world, self.port = world, os.path.join(world.dir, "timer-1.port")
        if os.path.exists(self.port):
            os.unlink(self.port)
        self.began = time.monotonic()
        with open(os.path.join(world.dir, "timer-1.log"), "ab") as log:
            self.process = subprocess.Popen([str(BIN / "sluice-timer"), "--service.ordinal", "1", "--http.port_file", self.port],
                                            env=world.env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

    def loaded(self, count):
        """Milliseconds from the start until it is ready and has so many timers in memory."""
        wait_for("%d timers" % count, lambda: os.path.exists(self.port) and self.world.http("timer-1", "/readyz")[0] == 200 and
                 self.world.metric("timer-1", "timers_near") >= count, 60, 0.05)
        return (time.monotonic() - self.began) * 1000

    def end(self, kill):
        if self.process.poll() is None:
            self.process.kill() if kill else self.process.terminate()
        return self.process.wait(30)


def seed(world, count, due_ms):
    """Timers of instances that are not there, as the timer service stores them; every tenth with a trace."""
    client = world.redis()
    for p in range(4):
        names = ["default~seed-%06d.s~%d" % (n, n) for n in range(p, count, 4)]
        for i in range(0, len(names), 2500):
            client.zadd("%s:t:{%d}" % (world.redis_prefix, p), {name: due_ms + i for name in names[i:i + 2500]})
        pipe = client.pipeline(transaction=False)
        for name in names[::10]:
            pipe.hset("%s:t:{%d}:d:%s" % (world.redis_prefix, p, name), "traceparent",
                      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        pipe.execute()


def stored(world):
    return sum(world.redis().zcard("%s:t:{%d}" % (world.redis_prefix, p)) for p in range(4))


def naps(world, kind, count):
    """Starts instances and gives their names."""
    names = ["%s-%d" % (kind, n) for n in range(count)]
    for name in names:
        world.publish("io.sluice.start", "/test", {"workflow": kind, "instance": name}, topic=world.topics["commands"], flush=False)
    assert world.producer.flush(30) == 0
    return names


def lateness(world, names, slept_ms):
    """How late each woke, in milliseconds, by the times in the log."""
    entered = {}

    def awake():
        for message in world.read("lifecycle"):
            event = message.event
            if event["type"] == "io.serverlessworkflow.state.entered.v1":
                entered[event["subject"], event["data"]["state"]] = ms(event["time"])
        return all((name, "Up") in entered for name in names)

    wait_for("%d naps" % len(names), awake, 90, 0.5)
    return sorted(entered[name, "Up"] - entered[name, "Nap"] - slept_ms for name in names)


def test_100_000_timers_start_soon_and_fire_on_time():
    slow = SLOW if b"__asan_init" in (BIN / "sluice-timer").read_bytes() else 1
    # all of them are within the horizon: all have to be in memory
    world, timer = World("manytimers", 1, 1, 0, lifecycle_level="action", timer_horizon_ms=1800000), None
    try:
        world.start()
        seed(world, COUNT, int(time.time() * 1000) + 600000)
        world.deploy(NAP.replace("SECONDS", "PT15S"), NAP.replace("SECONDS", "PT2S").replace("nap", "doze"))
        timer = Timer(world)
        first = timer.loaded(COUNT)
        long = naps(world, "nap", 100)
        wait_for("the naps' timers are stored", lambda: stored(world) == COUNT + len(long), 30)
        timer.end(kill=True)
        timer = Timer(world)
        again = timer.loaded(COUNT + len(long))
        print("%d timers: started in %d ms, after a kill in %d ms" % (COUNT, first, again))
        assert again < START_MS * slow, again
        probe = Probe(world)
        short = naps(world, "doze", 100)
        late = {"set before the kill": lateness(world, long, 15000), "set after it": lateness(world, short, 2000)}
        probe.going = False
        probe.join()
        for what, values in late.items():
            print("%s: late by %d ms at most, %d in the middle; Kafka's slowest answer %d ms" %
                  (what, values[-1], values[len(values) // 2], probe.worst_ms))
            assert values[0] >= 0, "too early: %s" % values
            assert values[-1] <= 250 * slow + 2 * probe.worst_ms, values
        wait_for("the others are as they were", lambda: stored(world) == COUNT, 30)
        assert timer.end(kill=False) == 0
    finally:
        if timer:
            timer.end(kill=True)
        world.stop()
