#!/usr/bin/env python3
"""Checks `sluice test` itself: what must not pass does not, and says why; and `sluice run` against a real service.

usage: check_tool.py PATH-OF-SLUICE

The scenarios of this folder all pass, so they cannot show that one that should fail does. Each case here is a scenario that is
written to a temporary folder and must be `not ok` with a certain text, above all: a refusal because something is not
supported yet never satisfies `rejected`.
"""
import copy
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree

GOOD = {
    "name": "good",
    "definition": {
        "id": "good",
        "specVersion": "0.8",
        "functions": [{"name": "f", "type": "custom", "operation": "POST http://service.example/f"}],
        "states": [{"name": "A", "type": "operation", "actions": [{"functionRef": "f"}], "end": True}],
    },
    "input": {"a": 1},
    "mocks": {"f": [{"return": {"b": 2}}]},
    "expect": {"status": "completed", "output": {"a": 1, "b": 2}, "calls": [{"function": "f", "at_ms": 0}]},
}


def inject(**more):
    return {"id": "x", "specVersion": "0.8", "states": [{"name": "A", "type": "inject", "data": {}, "end": True}], **more}


def with_state(**state):
    return inject(states=[{"name": "A", "type": "inject", "data": {}, "end": True, **state}])


def with_function(**function):
    return inject(
        functions=[{"name": "f", **function}],
        states=[{"name": "A", "type": "operation", "actions": [{"functionRef": "f"}], "end": True}],
    )


# Parts of 0.8 that deploy refuses: never ignored, and never a reason for `rejected` to hold.
UNSUPPORTED = {
    "subFlowRef": inject(states=[{"name": "A", "type": "operation", "actions": [{"subFlowRef": "y"}], "end": True}]),
    "keepActive": inject(keepActive=True),
    "continueAs": with_state(end={"continueAs": "y"}),
    "compensate": with_state(end={"compensate": True}),
    "schedule": inject(start={"stateName": "A", "schedule": "R/PT2H"}),
    "runBefore": inject(
        timeouts={"workflowExecTimeout": {"duration": "PT1H", "runBefore": "B"}},
        states=[{"name": n, "type": "inject", "data": {}, "end": True} for n in "AB"],
    ),
    "dataInputSchema": inject(dataInputSchema={"schema": {"type": "object"}}),
    "dataOutputSchema": inject(dataOutputSchema={"schema": {"type": "object"}}),
    "expressionLang": inject(expressionLang="jsonpath"),
    "extensions": inject(extensions=[{"extensionId": "e", "path": "file://e.json"}]),
    "graphql": inject(
        functions=[{"name": "f", "type": "graphql", "operation": "https://example.com/pets#query#pet"}],
        states=[{
            "name": "A", "type": "operation", "end": True,
            "actions": [{"functionRef": {"refName": "f", "arguments": {}, "selectionSet": "{ id }"}}],
        }],
    ),
    "asyncapi": with_function(type="asyncapi", operation="file://a.yaml#onX"),
    "rpc": with_function(type="rpc", operation="file://a.proto#S#M"),
    "odata": with_function(type="odata", operation="https://services.example/o.svc#P"),
}


def changed(**changes):
    scenario = copy.deepcopy(GOOD)
    for name, value in changes.items():
        scenario[name] = value
    return scenario


def expecting(**expect):
    return changed(expect={**GOOD["expect"], **expect})


# name of the case -> (scenario, text that the output must contain)
CASES = {
    "a member that does not exist": (changed(expects={}), "unknown member expects"),
    "an expectation that does not exist": (expecting(outputs={}), "unknown member expect.outputs"),
    "an unknown member of a mock": (changed(mocks={"f": [{"returns": 1}]}), "unknown member mocks[0].returns"),
    "an unknown member of an event": (changed(events=[{"at": "start", "event": {}}]), "unknown member events[0].at"),
    "events at no time": (changed(events=[{"after": "soon", "event": {"type": "a"}}]), "events[0].after"),
    "a state that does not exist": (
        changed(events=[{"after": "state:Z", "event": {"type": "a"}}]), "events[0].after: there is no state 'Z'"),
    "an event that nobody waits for": (changed(events=[{"after": "state:A", "event": {"type": "a"}}]), "never published"),
    "a mock of no function": (changed(mocks={**GOOD["mocks"], "g": [{"return": 1}]}), "mocks: there is no function 'g'"),
    "no such function in not_called": (expecting(not_called=["g"]), "not_called: there is no function 'g'"),
    "no such function in call_count": (expecting(call_count={"g": 0}), "call_count: there is no function 'g'"),
    "variables of another language": (changed(variables={"workflow": {}}), "not supported yet: variables"),
    "no expectation": ({k: v for k, v in GOOD.items() if k != "expect"}, "expect is missing"),
    "no definition": ({k: v for k, v in GOOD.items() if k != "definition"}, "definition is missing"),
    "a call that no mock answers": (changed(mocks={}), "no mock answers"),
    "a mock that is used up": (changed(mocks={"f": [{"return": 1, "times": 0}]}), "no mock answers"),
    "a mock for other arguments": (changed(mocks={"f": [{"when": {"x": 1}, "return": 1}]}), "no mock answers"),
    "another status": (expecting(status="faulted"), "status"),
    "no instance": (expecting(status="no-instance"), "status"),
    "two instances": (expecting(status="2 instances"), "status"),
    "another output": (expecting(output={"a": 1}), "output"),
    "more output": (expecting(output={"a": 1, "b": 2, "c": 3}), "output"),
    "output that does not contain": (expecting(output_contains={"b": 3}), "output_contains"),
    "output that is none of": (expecting(output_one_of=[{}, {"a": 1}]), "output_one_of"),
    "an error": (expecting(error={"code": "x"}), "error"),
    "too few calls": (expecting(calls=[]), "calls"),
    "too many calls": (expecting(calls=[{"function": "f"}, {"function": "f"}]), "calls"),
    "another time of the call": (expecting(calls=[{"function": "f", "at_ms": 1}]), "calls"),
    "other arguments": (expecting(calls=[{"function": "f", "arguments": {"x": 1}}]), "calls"),
    "calls that are not contained": (expecting(calls_contain=[{"at_ms": 5}]), "calls_contain"),
    "a function that was called": (expecting(not_called=["f"]), "not_called"),
    "another count": (expecting(call_count={"f": 2}), "call_count"),
    "none of the counts": (expecting(call_count_one_of={"f": [0, 2]}), "call_count"),
    "an event that nobody published": (expecting(published=[{"type": "x"}]), "published"),
    "another order": (expecting(order=["B"]), "order"),
    "another duration": (expecting(duration_ms={"min": 1, "max": 2}), "duration_ms"),
    "instances that are not there": (expecting(instances=[{"status": "completed"}, {"status": "completed"}]), "instances"),
    "another number of instances": (expecting(main_instances=2), "main_instances"),
    "log of another language": (expecting(log=["x"]), "log"),
    "an accepted definition": (changed(expect={"rejected": True}), "accepted"),
    "a refused definition": (changed(definition=inject(states=[])), "refused"),
    "refused for another reason": (
        changed(definition=inject(states=[]), expect={"rejected": "nothing like this"}), "expected diagnostics"),
    "a language of later": (changed(dialect="sw10"), "not supported yet"),
    "an unknown language": (changed(dialect="sw07"), "unknown dialect"),
}
for feature, definition in UNSUPPORTED.items():
    for what in (True, feature):
        CASES["%s, rejected: %s" % (feature, what)] = (
            {"name": feature, "definition": definition, "expect": {"rejected": what}}, "not ok %s: not supported yet: " % feature)

failures = 0


def check(case, holds, output):
    global failures
    if not holds:
        failures += 1
        print("not ok %s\n%s" % (case, output[:2000]))


class Service(http.server.BaseHTTPRequestHandler):
    """Answers with twice the `n` of the body, 404 elsewhere; keeps what it was asked."""

    asked = []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Service.asked.append((self.path, body, self.headers["Idempotency-Key"]))
        text = json.dumps({"double": 2 * body["n"]} if self.path == "/double" else {}).encode()
        self.send_response(200 if self.path == "/double" else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


def run_checks(program, folder, check):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def run(where, *args):
        call = {"refName": "f", "arguments": {"n": "${ .n }"}}
        path = os.path.join(folder, "run.json")
        with open(path, "w", encoding="utf-8") as out:
            json.dump(inject(functions=[{"name": "f", "type": "custom", "operation": "POST http://127.0.0.1:%d/%s" % (server.server_port, where)}],
                             states=[{"name": "A", "type": "operation", "actions": [{"functionRef": call}], "transition": "B"},
                                     {"name": "B", "type": "sleep", "duration": "PT1.5S", "end": True}]), out)
        start = time.monotonic()
        done = subprocess.run([program, "run", "--input", '{"n": 4}', *args, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=60)
        return done.returncode, done.stdout, time.monotonic() - start

    code, out, took = run("double")
    check("run calls the service", code == 0 and json.loads(out) == {"n": 4, "double": 8} and took < 1.5, out)
    check("once, with a key", len(Service.asked) == 1 and Service.asked[0][:2] == ("/double", {"n": 4}) and Service.asked[0][2], str(Service.asked))
    code, out, took = run("double", "--real-time")
    check("real time takes its time", code == 0 and took >= 1.5, "%s after %.2f s" % (out, took))
    code, out, took = run("elsewhere")
    check("a service's error faults", code == 1 and '"status":404' in out and out.startswith("faulted"), out)
    before = len(Service.asked)
    mocks = os.path.join(folder, "mocks.json")
    with open(mocks, "w", encoding="utf-8") as file:
        json.dump({"g": [{"return": 1}]}, file)
    code, out, took = run("double", "--mocks", mocks)
    check("with mocks nothing is called", code == 1 and "no mock answers this call of 'f'" in out and len(Service.asked) == before, out)
    server.shutdown()
    server.server_close()
    code, out, took = run("double")
    check("nobody listens", code == 1, out)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        def run(*args):
            done = subprocess.run([program, "test", *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
            return done.returncode, done.stdout

        def write(name, scenario):
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as out:
                json.dump(scenario, out)
            return path

        good = write("good/one.json", GOOD)
        code, out = run(good)
        check("the good one passes", code == 0 and "ok good" in out and "1 passed, 0 failed" in out, out)
        for number, (case, (scenario, text)) in enumerate(CASES.items()):
            code, out = run(write("%d.json" % number, scenario))
            check(case, code == 1 and "not ok" in out and text in out and "0 passed, 1 failed" in out, out)

        write("mixed/deeper/bad.json", dict(CASES["another output"][0], name="bad <one>"))
        write("mixed/good.json", GOOD)
        junit = os.path.join(folder, "report.xml")
        code, out = run("--junit", junit, os.path.join(folder, "mixed"))
        check("folders are walked, one failure fails", code == 1 and "1 passed, 1 failed" in out, out)
        suite = xml.etree.ElementTree.parse(junit).getroot()
        names = sorted(one.get("name") for one in suite.iter("testcase"))
        check("junit", suite.get("failures") == "1" and names == ["bad <one>", "good"], str(names))
        code, out = run("--filter", "good.json", os.path.join(folder, "mixed"))
        check("filter", code == 0 and "1 passed, 0 failed" in out, out)
        code, out = run("--output", "json", os.path.join(folder, "mixed"))
        check("json", code == 1 and sorted(one["passed"] for one in json.loads(out)) == [False, True], out)
        os.makedirs(os.path.join(folder, "empty"))
        check("nothing to run is no success", run(os.path.join(folder, "empty"))[0] != 0, "")
        check("a path that is not there", run(os.path.join(folder, "nowhere"))[0] == 2, "")
        check("no path", run()[0] == 2, "")
        run_checks(program, folder, check)
    total = len(CASES) + 14
    print("%d passed, %d failed" % (total - failures, failures))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
