"""The command line against a running Sluice: every command, its JSON and its exit codes (0 fine, 1 wrong, 2 usage, 3 unreachable)."""
import concurrent.futures
import json
import os
import re
import time
import uuid

import pytest

from support import BIN, World, wait_for

HEAD = """
id: {id}
name: {id}
version: '{version}'
specVersion: '0.8'
"""
HELLO = HEAD + """
start: Say
states:
  - {{name: Say, type: inject, data: {{said: {said}}}, end: true}}
"""
PAIR = HEAD + """
start: One
events:
  - {{name: A, type: {id}.a, source: /x, correlation: [{{contextAttributeName: pairid}}]}}
  - {{name: B, type: {id}.b, source: /x, correlation: [{{contextAttributeName: pairid}}, {{contextAttributeName: color, contextAttributeValue: red}}]}}
  - {{name: C, type: {id}.c, source: /x, correlation: [{{contextAttributeName: pairid}}]}}
states:
  - {{name: One, type: event, onEvents: [{{eventRefs: [A]}}], transition: Two}}
  - {{name: Two, type: event, onEvents: [{{eventRefs: [B]}}], transition: Three}}
  - {{name: Three, type: event, onEvents: [{{eventRefs: [C]}}], end: true}}
"""
FLAKY = HEAD + """
start: Call
functions:
  - {{name: flaky, type: custom, operation: POST STUB/flaky?fail=1}}
states:
  - {{name: Before, type: inject, data: {{}}, transition: Call}}
  - {{name: Call, type: operation, actions: [{{functionRef: {{refName: flaky, arguments: {{x: '${{ .x }}'}}}}}}], end: true}}
"""


@pytest.fixture(scope="module")
def world():
    world = World("cli", 1, 1, 1).start()
    yield world
    world.stop()


def name():
    return "w" + uuid.uuid4().hex[:8]


def deployed(world, text, id=None, version="1.0.0", **more):
    id = id or name()
    world.deploy(text.format(id=id, version=version, **more))
    return id


def pair(world):
    """A workflow, its correlation value, and its one instance that waits in state Two."""
    workflow, key = deployed(world, PAIR), name()
    event = world.publish(workflow + ".a", "/x", {"a": 1}, pairid=key)
    instance = wait_for("the instance", lambda: world.list(workflow=workflow, status="waiting"))[0]["id"]
    return workflow, key, instance, event


# --- commands ---

def test_usage_mistakes_end_with_2_and_help_with_0(world):
    commands = ["validate", "test", "run", "deploy", "undeploy", "start", "publish", "list", "show", "why", "cancel", "retry", "purge",
                "dead-letters", "topics"]
    for command in commands:
        done = world.cli(command, "--help")
        assert done.code == 0 and "sluice " + command + " " in done.out, done
        done = world.cli(command, "--nosuch")
        assert done.code == 2 and done.err, done
    for words in ([], ["fly"], ["show"], ["start"], ["start", "a", "b"], ["start", "a", "--input", "{"], ["why"], ["cancel"], ["topics", "fly"],
                  ["publish"], ["deploy"], ["list", "--output", "xml"], ["start", "a", "--id", "no spaces"], ["list", "--namespace", "A_B"],
                  ["dead-letters", "show", "x"]):
        done = world.cli(*words)
        assert done.code == 2, (words, done)
    assert re.fullmatch(r"sluice \d+\.\d+\.\d+\S*\n", world.ok("--version").out)


def test_unreachable_parts_end_with_3_and_name_the_address_and_the_setting(world):
    kafka, redis = ["--kafka.brokers", "127.0.0.1:1"], ["--redis.url", "redis://127.0.0.1:1/0"]
    commands = [words + kafka for words in (["list"], ["start", "x"], ["publish", "--type", "t"], ["dead-letters", "list"], ["topics", "create"])]
    commands += [words + redis for words in (["list"], ["show", "x"], ["why", "x"])]
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(len(commands)) as pool:
        for words, done in zip(commands, pool.map(lambda words: world.cli(*words), commands)):
            assert done.code == 3 and "127.0.0.1:1" in done.err, (words, done)
            assert ("SLUICE_REDIS_URL" if "--redis.url" in words else "SLUICE_KAFKA_BROKERS") in done.err, (words, done)
    assert time.monotonic() - began < 25


def test_deploy_reports_positions_and_refuses_the_same_version_with_other_content(world):
    id = name()
    bad = world.definition(HELLO.format(id=id, version="1.0.0", said=1).replace("end: true", "transition: Nowhere"))
    done = world.cli("deploy", bad)
    assert done.code == 1 and re.search(re.escape(bad) + r":\d+:\d+: error: .*Nowhere", done.err), done
    assert world.cli("start", id).code == 1, "a refused definition is not deployed"
    done = world.cli("deploy", "/nosuch.yaml")
    assert done.code == 1 and "/nosuch.yaml" in done.err, done

    first = world.definition(HELLO.format(id=id, version="1.0.0", said=1))
    answer = world.json("deploy", first)
    assert (answer["ok"], answer["workflow"], answer["version"]) == (True, id, "1.0.0")
    assert world.json("deploy", first)["hash"] == answer["hash"], "the same again is fine"
    other = world.definition(HELLO.format(id=id, version="1.0.0", said=2))
    done = world.cli("deploy", other)
    assert done.code == 1 and "1.0.0" in done.err and "other content" in done.err, done
    assert world.json("start", "--wait", id)["output"] == {"said": 1}


def test_versions_the_highest_active_one_starts(world):
    id = deployed(world, HELLO, said=1)
    deployed(world, HELLO, id, "1.10.0", said=10)
    deployed(world, HELLO, id, "1.9.0", said=9)
    assert world.json("start", "--wait", id)["output"] == {"said": 10}
    assert world.json("start", "--wait", id, "--version", "1.9.0")["output"] == {"said": 9}
    assert world.json("undeploy", id)["version"] == "1.10.0"
    assert world.json("start", "--wait", id)["output"] == {"said": 9}
    world.ok("undeploy", id, "--version", "1.9.0")
    world.ok("undeploy", id, "--version", "1.0.0")
    done = world.cli("start", id)
    assert done.code == 1 and "no active version" in done.err, done
    done = world.cli("undeploy", id)
    assert done.code == 1 and id in done.err, done
    deployed(world, HELLO, id, "1.9.0", said=9)
    assert world.json("start", "--wait", id)["output"] == {"said": 9}, "deployed again"


def test_start_with_an_id_input_from_a_file_and_namespaces(world):
    id, instance = deployed(world, HELLO, said=1), name()
    file = os.path.join(world.dir, "input.json")
    with open(file, "w", encoding="utf-8") as out:
        json.dump({"grüße": "ü"}, out)
    started = world.json("start", id, "--id", instance, "--input", "@" + file, "--wait")
    assert started == {"instance": instance, "status": "completed", "output": {"said": 1, "grüße": "ü"}}
    done = world.cli("start", id, "--id", instance)
    assert done.code == 1 and "exists" in done.err, done
    shown = world.show(instance)
    assert (shown["status"], shown["workflow"], shown["version"], shown["output"]) == ("completed", id, "1.0.0", started["output"])
    # another namespace knows neither
    assert world.cli("show", instance, "--namespace", "other").code == 1
    assert world.cli("start", id, "--namespace", "other").code == 1
    world.ok("deploy", "--namespace", "other", world.definition(HELLO.format(id=id, version="1.0.0", said=2)))
    assert world.json("start", id, "--id", instance, "--wait", "--namespace", "other")["output"] == {"said": 2}
    assert [one["id"] for one in world.json("list", "--namespace", "other")] == [instance]


def test_list_and_show_tell_what_an_instance_waits_for(world):
    workflow, key, instance, event = pair(world)
    assert [one["id"] for one in world.list(workflow=workflow)] == [instance]
    assert world.list(workflow=workflow, status="completed") == []
    shown = world.show(instance)
    assert shown["status"] == "waiting" and shown["states"] == ["Two"] and shown["bindings"] == {"pairid": key}
    assert [w["events"] for w in shown["waits"]] == [[workflow + ".b"]]
    assert shown["data"] == {"a": 1}
    assert [t.get("state") for t in shown["transitions"]] == ["One", "Two"] and event in shown["transitions"][0]["cause"]
    text = world.ok("show", instance).out
    assert "waiting" in text and workflow + ".b" in text and "Two" in text
    text = world.ok("list", "--workflow", workflow).out
    assert instance in text and "waiting" in text and "\x1b" not in text
    done = world.cli("show", "nosuch")
    assert done.code == 1 and "nosuch" in done.err, done


def test_cancel_and_purge(world):
    workflow, key, instance, _ = pair(world)
    done = world.cli("purge", instance)
    assert done.code == 1, done
    assert world.json("cancel", instance, "--reason", "enough")["ok"] is True
    shown = world.wait_status(instance, "cancelled", 5)
    assert "enough" in json.dumps(shown)
    assert any(d["instance"] == instance for d in world.lifecycle("cancelled", workflow))
    done = world.cli("cancel", instance)
    assert done.code == 1 and "ended" in done.err, done
    world.ok("purge", instance)
    assert world.cli("show", instance).code == 1
    assert world.list(workflow=workflow) == []


def test_retry_lets_a_faulted_instance_go_on_where_it_failed(world):
    workflow, instance = deployed(world, FLAKY), name()
    done = world.cli("start", workflow, "--id", instance, "--input", '{"x": 5}', "--wait", "--output", "json")
    assert done.code == 1 and done.json["status"] == "faulted" and done.json["error"]["code"] == "503", done
    done = world.cli("start", workflow, "--id", name(), "--input", '{"x": 6}', "--wait")
    assert done.code == 1 and "503" in done.out + done.err, done
    world.ok("retry", instance)
    shown = world.wait_status(instance, "completed", 5)
    assert shown["output"] == {"x": 5}
    calls = [c for c in world.stub.calls("/flaky") if c["instance"] == instance]
    assert len(calls) == 2 and calls[0]["key"] == calls[1]["key"], "the same logical action"
    done = world.cli("retry", instance)
    assert done.code == 1, done


CLAIM = HEAD + """
start: Begin
functions:
  - {{name: stub, type: custom, operation: 'POST STUB/{{what}}'}}
events:
  - {{name: Begin, type: {id}.begin, source: /x, correlation: [{{contextAttributeName: pairid}}]}}
  - {{name: Go, type: {id}.go, source: /x, correlation: [{{contextAttributeName: pairid}}]}}
states:
  - name: Begin
    type: event
    onEvents: [{{eventRefs: [Begin], actions: [{{functionRef: {{refName: stub, arguments: {{what: '${{ .what }}'}}}}}}]}}]
    transition: Wait
  - {{name: Wait, type: event, onEvents: [{{eventRefs: [Go]}}], end: true}}
"""


def test_a_refusal_says_what_to_do_and_keeps_its_code_for_programs(world):
    workflow, key, waiting, _ = pair(world)
    hello, done = deployed(world, HELLO, said=1), name()
    world.ok("start", hello, "--id", done, "--wait")
    claim = deployed(world, CLAIM)
    world.publish(claim + ".begin", "/x", {"what": "drop"}, pairid=key)
    faulted = wait_for("the fault", lambda: world.list(workflow=claim, status="faulted"))[0]["id"]
    world.publish(claim + ".begin", "/x", {"what": "mirror"}, pairid=key)
    wait_for("the other", lambda: world.list(workflow=claim, status="waiting"))
    for words, code, text in (
            (["cancel", "nosuch"], "unknown-instance", r"no such instance.*sluice list"),
            (["start", hello, "--id", done], "exists", r"already.*--id.*sluice purge"),
            (["cancel", done], "ended", r"has ended.*sluice show"),
            (["purge", waiting], "running", r"not ended.*sluice cancel"),
            (["retry", waiting], "not-faulted", r"only a faulted instance.*sluice show"),
            (["retry", faulted], "claimed", r"same correlation key.*then retry")):
        result = world.cli(*words)
        assert result.code == 1 and re.search(r"^refused: .*%s.* \[%s\]$" % (text, code), result.err, re.M), result
        result = world.cli(*words, "--output", "json")
        assert result.code == 1 and not result.err, result
        assert (result.json["ok"], result.json["reason"]) == (False, code) and re.search(text, result.json["text"]), result


def test_topics_and_dead_letters(world):
    done = world.ok("topics", "create")
    assert "0 topics created" in done.out, done
    world.ok("topics", "check")
    listed = world.ok("topics", "list").out
    assert all(topic in listed for t, topic in world.topics.items()), listed
    world.produce(world.topics["events"], b"{nonsense", b"k1", [("content-type", b"application/cloudevents+json"), ("x", b"\xff\x00")])
    world.wait_dead(lambda m: m.key == b"k1")
    letters = world.json("dead-letters", "list")
    letter = next(one for one in letters if world.topics["events"] in json.dumps(one))
    shown = world.json("dead-letters", "show", letter["letter"])
    assert "nonsense" in json.dumps(shown) and "k1" in json.dumps(shown), shown
    assert letter["reason"] in world.ok("dead-letters", "list").out
    assert "nonsense" in world.ok("dead-letters", "show", letter["letter"]).out
    assert world.cli("dead-letters", "show", "0/999999").code == 1


def test_publish_takes_options_files_and_modes(world):
    workflow = deployed(world, PAIR)
    for mode in ("structured", "binary", "avro"):
        key = name()
        world.ok("publish", "--type", workflow + ".a", "--source", "/x", "--data", '{"mode": "%s"}' % mode, "--mode", mode, "pairid=" + key)
        wait_for("an instance by a %s event" % mode, lambda: [
            one for one in world.list(workflow=workflow) if world.show(one["id"])["data"] == {"mode": mode}], 10)
    event = {"specversion": "1.0", "type": workflow + ".a", "source": "/x", "id": name(), "pairid": name(), "data": {"from": "file"}}
    published = world.json("publish", "--file", "-", stdin=json.dumps(event))
    assert published["id"] == event["id"]
    wait_for("its instance", lambda: len(world.list(workflow=workflow)) == 4, 10)


# --- a command start that waits for its event (A169) ---

def test_a_command_start_waits_for_its_event_with_the_given_input(world):
    workflow, instance, key = deployed(world, PAIR), name(), name()
    world.ok("start", workflow, "--id", instance, "--input", json.dumps({"pairid": key, "given": 1}))
    shown = world.wait_status(instance, "waiting")
    assert shown["states"] == ["One"]
    world.publish(workflow + ".a", "/x", {"a": 1}, pairid=key)
    wait_for("the next state", lambda: world.show(instance)["states"] == ["Two"], 10)
    assert world.show(instance)["data"] == {"pairid": key, "given": 1, "a": 1}
    assert len(world.list(workflow=workflow)) == 1, "the waiting instance took it; none was started (A78)"
    world.publish(workflow + ".b", "/x", {"b": 2}, pairid=key, color="red")
    world.publish(workflow + ".c", "/x", {"c": 3}, pairid=key)
    assert world.wait_status(instance, "completed", 10)["output"] == {"pairid": key, "given": 1, "a": 1, "b": 2, "c": 3}


def test_a_command_start_without_a_key_takes_the_first_event_that_comes(world):
    workflow, instance, key = deployed(world, PAIR), name(), name()
    world.ok("start", workflow, "--id", instance, "--input", '{"given": 2}')
    assert world.wait_status(instance, "waiting")["states"] == ["One"]
    world.publish(workflow + ".a", "/x", {"a": 1}, pairid=key)
    wait_for("the next state", lambda: world.show(instance)["states"] == ["Two"], 10)
    assert world.show(instance)["bindings"] == {"pairid": key}
    assert world.show(instance)["data"] == {"given": 2, "a": 1}


# --- why ---

def why(world, event):
    """The decisions, once there are any."""
    return wait_for("why", lambda: (lambda done: done.json if done.code == 0 else None)(world.cli("why", event, "--output", "json")), 10)


def test_why_explains_every_fate_of_an_event(world):
    workflow, key, instance, started = pair(world)
    decisions = why(world, started)
    assert decisions[0]["decision"] == "started" and decisions[0]["results"][0]["instance"] == instance, decisions
    assert workflow in world.ok("why", started).out

    # wrong value
    event = world.publish(workflow + ".b", "/x", pairid=key, color="blue")
    candidate = why(world, event)[0]["candidates"][0]
    assert (candidate["attribute"], candidate["wanted"], candidate["have"]) == ("color", "red", "blue")
    assert "blue" in world.ok("why", event).out and "red" in world.ok("why", event).out
    # attribute missing
    event = world.publish(workflow + ".c", "/x")
    candidate = why(world, event)[0]["candidates"][0]
    assert candidate["attribute"] == "pairid" and not candidate.get("have")
    assert "pairid is missing" in world.ok("why", event).out
    # another source
    event = world.publish(workflow + ".c", "/elsewhere", pairid=key)
    assert "/elsewhere" in world.ok("why", event).out
    # no plan at that moment: still after one has been deployed
    late = name()
    event = world.publish(late + ".a", "/x", pairid=key)
    assert why(world, event)[0]["decision"] == "nobody"
    deployed(world, PAIR, late)
    assert why(world, event)[0]["decision"] == "nobody" and not why(world, event)[0].get("candidates")
    # nobody has this key
    event = world.publish(workflow + ".c", "/x", pairid=name())
    assert why(world, event)[0]["decision"] == "early"
    # in the inbox: it came before its state
    event = world.publish(workflow + ".c", "/x", {"c": 3}, pairid=key)
    wait_for("in the inbox", lambda: world.show(instance)["inbox"] == 1, 10)
    assert "inbox" in json.dumps(why(world, event)) or "delivered" in json.dumps(why(world, event))
    assert instance in world.ok("why", event).out
    # matched
    event = world.publish(workflow + ".b", "/x", {"b": 2}, pairid=key, color="red")
    assert why(world, event)[0]["decision"] == "delivered" and instance in json.dumps(why(world, event))
    world.wait_status(instance, "completed", 10)
    # the instance has ended
    event = world.publish(workflow + ".b", "/x", pairid=key, color="red")
    decision = why(world, event)[0]
    assert decision["decision"] in ("early", "nobody"), decision
    # unknown
    done = world.cli("why", name())
    assert done.code == 1 and "nothing is known" in done.err, done


# --- health ---

def test_health_and_metrics_answer(world):
    for service in world.names():
        assert world.http(service, "/healthz")[0] == 200
        assert world.http(service, "/readyz")[0] == 200
        status, text = world.http(service, "/metrics")
        assert status == 200 and "# TYPE sluice_records_in_total counter" in text and "sluice_partitions_owned" in text
        assert world.http(service, "/nosuch")[0] == 404
    assert world.metric("coordinator-1", "instances_started_total") > 0
    assert world.metric("coordinator-1", "events_unmatched_total") > 0
    assert world.metric("coordinator-1", "dead_letters_total") > 0
    assert world.metric("coordinator-1", "commands_total", answer="refused") > 0
    assert world.metric("executor-1", "calls_total", result="error") > 0


def test_programs_tell_their_version_and_settings():
    import subprocess
    for program in ("sluice-coordinator", "sluice-executor", "sluice-timer"):
        done = subprocess.run([str(BIN / program), "--version"], capture_output=True, text=True, timeout=20, check=True)
        assert done.stdout.startswith(program)
        done = subprocess.run([str(BIN / program), "--help"], capture_output=True, text=True, timeout=20, check=True)
        assert "kafka.brokers" in done.stdout and "redis.url" in done.stdout
        done = subprocess.run([str(BIN / program), "--nosuch.setting", "1"], capture_output=True, text=True, timeout=20, check=False)
        assert done.returncode == 2 and "nosuch.setting" in done.stderr
