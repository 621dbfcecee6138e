"""What the end-to-end tests share: a world of real services around given or own Kafka and Redis, its clients, the HTTP stub."""
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid

import redis
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LOCAL = ROOT / "deploy" / "local"
BIN = pathlib.Path(os.environ.get("SLUICE_BIN", ROOT / "build" / "dev" / "bin"))
KEEP = bool(os.environ.get("SLUICE_E2E_KEEP"))  # leave logs behind
PARTS = ("coordinator", "executor", "timer")
# What a sanitizer, an assert or a crash leaves in a log: a test that met one has failed, whatever it checked.
CRASHES = ("AddressSanitizer", "LeakSanitizer", "runtime error:", "ThreadSanitizer", "internal error", "Assertion")
LIFECYCLE = "io.serverlessworkflow.workflow."


def wait_for(what, check, timeout=30, every=0.05):
    """Calls check until it gives something true, which it returns; AssertionError naming `what` after the timeout."""
    until = time.monotonic() + timeout
    while True:
        value = check()
        if value:
            return value
        if time.monotonic() > until:
            raise AssertionError("%s: not within %g s (last: %r)" % (what, timeout, value))
        time.sleep(every)


def free_port():
    """Below the ephemeral ports: of those, a client that knocks at a server which is away may get the server's own, and hold it."""
    while True:
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", random.randrange(15000, 32000)))
                return sock.getsockname()[1]
            except OSError:
                pass


class Server:
    """A Kafka broker or a Redis of deploy/local in a folder of its own, which can be stopped, killed and started again."""

    def __init__(self, kind, folder, port=None):
        self.kind, self.folder = kind, str(folder)
        self.script = str(LOCAL / (kind + ".sh"))
        self.env = dict(os.environ)
        if port:
            self.env["SLUICE_%s_PORT" % kind.upper()] = str(port)
        self.env["SLUICE_KAFKA_HEAP"] = "256m"

    def run(self, verb):
        subprocess.run([self.script, verb, self.folder], check=True, env=self.env, stdout=subprocess.DEVNULL,
                       stdin=subprocess.DEVNULL, timeout=120)

    def start(self):
        self.run("start")
        with open(os.path.join(self.folder, self.kind + ".env"), encoding="ascii") as lines:
            return lines.read().strip().split("=", 1)[1]

    def stop(self):
        self.run("stop")


class Stub:
    """stub.py as a process; its log is the record of every call."""

    def __init__(self, folder, ends=False):
        self.port_file, self.log = os.path.join(folder, "stub.port"), os.path.join(folder, "stub.log")
        command = [sys.executable, str(HERE / "stub.py"), "--port-file", self.port_file, "--log", self.log]
        self.process = subprocess.Popen(command + (["--log-ends"] if ends else []), stdin=subprocess.DEVNULL)
        wait_for("the stub's port", lambda: os.path.exists(self.port_file))
        with open(self.port_file, encoding="ascii") as text:
            self.port = int(text.read())
        self.url = "http://127.0.0.1:%d" % self.port

    def entries(self):
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="utf-8") as lines:
            return [json.loads(line) for line in lines if line.endswith("\n")]

    def calls(self, path=None):
        return [e for e in self.entries() if "done" not in e and (path is None or e["path"] == path)]

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            return json.loads(answer.read() or b"null")

    def stop(self):
        self.process.terminate()
        self.process.wait(10)


class Done:
    """What a run of the CLI gave."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        return json.loads(self.out)

    def __repr__(self):
        return "exit %d\nstdout: %s\nstderr: %s" % (self.code, self.out, self.err)


class Message:
    """One Kafka record, with its CloudEvent when it is a structured one."""

    def __init__(self, msg):
        self.topic, self.partition, self.offset = msg.topic(), msg.partition(), msg.offset()
        self.key, self.value, self.time_ms = msg.key(), msg.value() or b"", msg.timestamp()[1]
        self.headers = {name: value for name, value in (msg.headers() or [])}
        self.raw_headers = msg.headers() or []

    @property
    def event(self):
        try:
            return json.loads(self.value)
        except ValueError:
            return {}

    def header(self, name):
        value = self.headers.get(name)
        return None if value is None else value.decode("utf-8", "replace")


class World:
    """Topics, Redis keys and services of their own. Settings are those of config.def, with '_' for '.'."""

    def __init__(self, name, coordinators=2, executors=2, timers=2, kafka=None, redis_url=None, stub_ends=False, **settings):
        self.name = name
        self.count = {"coordinator": coordinators, "executor": executors, "timer": timers}
        self.dir = tempfile.mkdtemp(prefix="sluice-e2e-%s-" % name)
        self.kafka = kafka or os.environ["SLUICE_KAFKA_BROKERS"]
        self.redis_url = redis_url or os.environ["SLUICE_REDIS_URL"]
        mark = "e2e-%s-%s" % (name, uuid.uuid4().hex[:6])
        self.prefix, self.redis_prefix = mark + ".", mark
        self.topics = {t: self.prefix + t for t in ("events", "commands", "instances", "actions", "timers", "definitions", "lifecycle",
                                                    "dead-letter")}
        self.stub = Stub(self.dir, stub_ends)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("SLUICE_")}
        self.env.update({"SLUICE_KAFKA_BROKERS": self.kafka, "SLUICE_REDIS_URL": self.redis_url, "SLUICE_BIN": str(BIN),
                         "SLUICE_TOPIC_PREFIX": self.prefix, "SLUICE_REDIS_PREFIX": self.redis_prefix,
                         "SLUICE_TOPICS_EVENTS": self.topics["events"] + "=default", "SLUICE_EXECUTOR_EGRESS_LOOPBACK": "true",
                         "SLUICE_PARTITIONS_INSTANCES": "8", "SLUICE_PARTITIONS_EVENTS": "4", "SLUICE_PARTITIONS_ACTIONS": "8",
                         "SLUICE_PARTITIONS_COMMANDS": "4", "SLUICE_PARTITIONS_TIMERS": "4", "SLUICE_PARTITIONS_LIFECYCLE": "4",
                         "SLUICE_PARTITIONS_DEAD_LETTER": "4"})
        self.set(**settings)
        self.running = False
        self.producer_ = None
        self.endings = {0}  # exit codes that a service may end with

    def set(self, **settings):
        for setting, value in settings.items():
            self.env["SLUICE_" + setting.upper()] = str(value)

    # --- services ---

    def create_topics(self):
        done = self.cli("topics", "create")
        assert done.code == 0, done

    def start(self, topics=True):
        if topics:
            self.create_topics()
        self.services("start")
        self.running = True
        return self

    def programs(self, **scripts):
        """From now on `coordinator`, `executor` or `timer` is started by that shell script, which execs "$REAL" "$@" in the end; "$N" is the
        process's number."""
        folder = os.path.join(self.dir, "programs")
        os.makedirs(folder, exist_ok=True)
        for part in PARTS:
            name = "sluice-" + part
            script = '#!/bin/sh\nREAL="%s"\nN=$2\n%s' % (BIN / name, scripts.get(part, 'exec "$REAL" "$@"\n'))
            with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
                out.write(script)
            os.chmod(out.name, 0o755)
        self.set(bin=folder)

    def services(self, verb, wait=True):
        command = [str(LOCAL / "services.sh"), verb, self.dir, str(self.count["executor"]), str(self.count["coordinator"]),
                   str(self.count["timer"])]
        out = open(os.path.join(self.dir, "services-%s.out" % verb), "wb")
        process = subprocess.Popen(command, env=self.env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        out.close()
        if not wait:
            return process
        code = process.wait(120)
        with open(os.path.join(self.dir, "services-%s.out" % verb), encoding="utf-8") as text:
            assert code == 0, "services.sh %s: exit %d: %s" % (verb, code, text.read())
        return process

    def names(self, part=None):
        return ["%s-%d" % (p, i + 1) for p in PARTS for i in range(self.count[p]) if part in (None, p)]

    def pid(self, name):
        try:
            with open(os.path.join(self.dir, name + ".pid"), encoding="ascii") as text:
                return int(text.read().strip() or 0)
        except (FileNotFoundError, ValueError):
            return 0

    def pids(self):
        return {name: self.pid(name) for name in self.names()}

    def kill(self, name, number=signal.SIGKILL):
        os.kill(self.pid(name), number)

    def http(self, name, path):
        """Status and body of a service's health port; (0, why) when it does not answer."""
        try:
            with open(os.path.join(self.dir, name + ".port"), encoding="ascii") as text:
                port = int(text.read())
            with urllib.request.urlopen("http://127.0.0.1:%d%s" % (port, path), timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except (OSError, ValueError) as error:
            return 0, str(error)

    def ready(self):
        return all(self.http(name, "/readyz")[0] == 200 for name in self.names())

    def metric(self, name, metric, **labels):
        total = 0.0
        for line in self.http(name, "/metrics")[1].splitlines():
            if line.startswith("sluice_" + metric) and line[len("sluice_" + metric)] in "{ " and \
                    all('%s="%s"' % label in line for label in labels.items()):
                total += float(line.rsplit(" ", 1)[1])
        return total

    def log(self, name):
        try:
            with open(os.path.join(self.dir, name + ".log"), encoding="utf-8", errors="replace") as text:
                return text.read()
        except FileNotFoundError:
            return ""

    def stop(self):
        """Stops everything; fails when a service crashed or a sanitizer spoke."""
        self.services("stop")
        self.stub.stop()
        found = []
        for name in self.names():
            for line in self.log(name).splitlines():
                ended = re.search(r" ended with (\d+)$", line)
                if any(crash in line for crash in CRASHES) or (ended and int(ended.group(1)) not in self.endings):
                    found.append("%s: %s" % (name, line[:400]))
        if not KEEP:
            self.forget()
        if not found and not KEEP:
            shutil.rmtree(self.dir, ignore_errors=True)
        assert not found, "in the logs of %s: %s" % (self.dir, found[:5])

    def forget(self):
        try:
            AdminClient({"bootstrap.servers": self.kafka, "log_level": 0}).delete_topics(list(self.topics.values()))
            client = self.redis()
            keys = list(client.scan_iter(self.redis_prefix + ":*", count=1000))
            for i in range(0, len(keys), 500):
                client.unlink(*keys[i:i + 500])
        except (redis.RedisError, KafkaError, OSError):
            pass

    # --- CLI ---

    def cli(self, *args, timeout=60, stdin=None):
        done = subprocess.run([str(BIN / "sluice"), *args], env=self.env, input=stdin, capture_output=True, timeout=timeout, check=False,
                              stdin=None if stdin else subprocess.DEVNULL, text=True)
        return Done(done.returncode, done.stdout, done.stderr)

    def ok(self, *args, **more):
        done = self.cli(*args, **more)
        assert done.code == 0, "sluice %s: %r" % (" ".join(args), done)
        return done

    def json(self, *args, **more):
        return self.ok(*args, "--output", "json", **more).json

    def definition(self, text):
        """A file with the definition; STUB stands for the stub's address."""
        name = os.path.join(self.dir, "d-%s.sw.yaml" % uuid.uuid4().hex[:8])
        with open(name, "w", encoding="utf-8") as out:
            out.write(text.replace("STUB", self.stub.url))
        return name

    def deploy(self, *texts):
        return self.ok("deploy", *[self.definition(text) for text in texts])

    def show(self, instance):
        return self.json("show", instance)

    def list(self, **options):
        words = [w for k, v in options.items() for w in ("--" + k, str(v))]
        return self.json("list", "--limit", "100000", *words)

    # --- Kafka ---

    @property
    def producer(self):
        if not self.producer_:
            self.producer_ = Producer({"bootstrap.servers": self.kafka, "message.max.bytes": 32 * 1024 * 1024, "linger.ms": 1,
                                       "log_level": 0})
        return self.producer_

    def produce(self, topic, value, key=None, headers=None, partition=-1, flush=True):
        problems = []
        self.producer.produce(topic, value=value, key=key, headers=headers, partition=partition,
                              on_delivery=lambda err, msg: err and problems.append(str(err)))
        if flush:
            assert self.producer.flush(30) == 0, "Kafka did not take the record"
            assert not problems, problems

    def publish(self, kind, source, data=None, id=None, partition=-1, flush=True, topic=None, **attributes):
        """A structured JSON event, written by hand."""
        event = {"specversion": "1.0", "type": kind, "source": source, "id": id or uuid.uuid4().hex, "datacontenttype": "application/json",
                 "data": data if data is not None else {}}
        event.update(attributes)
        self.produce(topic or self.topics["events"], json.dumps(event).encode(), headers=[("content-type", b"application/cloudevents+json")],
                     partition=partition, flush=flush)
        return event["id"]

    def read(self, topic):
        """Everything that the topic holds now."""
        name = self.topics.get(topic, topic)
        consumer = Consumer({"bootstrap.servers": self.kafka, "group.id": "none", "enable.auto.commit": False, "log_level": 0,
                             "enable.partition.eof": True, "fetch.message.max.bytes": 64 * 1024 * 1024, "fetch.wait.max.ms": 20})
        try:
            partitions = consumer.list_topics(name, 10).topics[name].partitions
            ends = {p: consumer.get_watermark_offsets(TopicPartition(name, p), 10) for p in partitions}
            wanted = {p for p, (low, high) in ends.items() if high > low}
            consumer.assign([TopicPartition(name, p, ends[p][0]) for p in wanted])
            found, until = [], time.monotonic() + 30
            while wanted:
                assert time.monotonic() < until, "cannot read %s" % name
                msg = consumer.poll(1)
                if msg is None:
                    continue
                if msg.error():
                    if msg.error().code() == KafkaError._PARTITION_EOF:
                        wanted.discard(msg.partition())
                    continue
                found.append(Message(msg))
                if msg.offset() + 1 >= ends[msg.partition()][1]:
                    wanted.discard(msg.partition())
            return found
        finally:
            consumer.close()

    def events(self, kind=None):
        return [m for m in self.read("events") if kind is None or m.event.get("type") == kind]

    def lifecycle(self, what=None, workflow=None):
        """Data of lifecycle events such as 'completed', one per event id."""
        seen = {}
        for message in self.read("lifecycle"):
            event = message.event
            if event.get("type", "").startswith(LIFECYCLE) and (not what or event["type"] == LIFECYCLE + what + ".v1") and \
                    (not workflow or event["data"].get("workflow") == workflow):
                seen[event["id"]] = event["data"]
        return list(seen.values())

    def wait_ended(self, workflow, count, what="completed", timeout=60):
        def check():
            ended = self.lifecycle(what, workflow)
            return ended if len(ended) >= count else None
        return wait_for("%d instances of %s %s" % (count, workflow, what), check, timeout, 0.2)

    def wait_status(self, instance, status, timeout=30):
        """Until the instance is there and has the status; its `show`."""
        def check():
            done = self.cli("show", instance, "--output", "json")
            return done.json if done.code == 0 and done.json["status"] == status else None
        return wait_for("%s %s" % (instance, status), check, timeout, 0.1)

    def dead_letters(self):
        return self.read("dead-letter")

    def wait_dead(self, check, timeout=30):
        return wait_for("a dead letter", lambda: next((m for m in self.dead_letters() if check(m)), None), timeout, 0.2)

    # --- Redis ---

    def redis(self):
        return redis.Redis.from_url(self.redis_url, socket_timeout=10)

    def offsets(self, group, topic):
        """Committed offset per partition and the topic's ends."""
        consumer = Consumer({"bootstrap.servers": self.kafka, "group.id": self.prefix + group, "enable.auto.commit": False, "log_level": 0})
        try:
            name = self.topics[topic]
            partitions = [TopicPartition(name, p) for p in consumer.list_topics(name, 10).topics[name].partitions]
            committed = {tp.partition: tp.offset for tp in consumer.committed(partitions, 10)}
            ends = {tp.partition: consumer.get_watermark_offsets(tp, 10)[1] for tp in partitions}
            return committed, ends
        finally:
            consumer.close()
