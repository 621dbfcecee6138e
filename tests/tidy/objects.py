#!/usr/bin/env python3
"""The simulator runs what the services run: the same archives, the same functions, nothing of them replaced.

  objects.py BUILD [PROGRAM]   BUILD: a build folder of Ninja with everything built; PROGRAM: default bin/sluice-sim
Prints "ok sim-objects" or "not ok sim-objects" with what differs.
"""
import os
import re
import subprocess
import sys

SERVICES = ("coordinator", "executor", "timer")
# What only a service may have: configuration and life, adapters, the child process of the executor.
WIRING = {"libsl_connect.a", "libsl_app.a", "libsl_kafka.a", "libsl_redis.a", "libsl_http.a", "libsl_uv.a", "libsl_child.a"}
WRAPPED = {"sl_compile"}  # plans outlive a run
THREAD = re.compile(r"sl_watchdog_")  # the watchdog's thread belongs to the process: main.c starts it


def run(*args):
    return subprocess.run(args, check=True, capture_output=True, text=True).stdout


def link_line(build, program):
    lines = run("ninja", "-C", build, "-t", "commands", program).splitlines()
    return next(line for line in reversed(lines) if re.search(r"-o " + re.escape(program) + r"\s", line + " "))


def archives(line):
    return {os.path.basename(a): a for a in re.findall(r"\S*libsl_\w+\.a", line)}


def functions(path):
    """Global functions and data that a program or archive defines."""
    return {m.group(1) for m in re.finditer(r"^[0-9a-f]+ [TDBR] (\w+)$", run("nm", "-g", "--defined-only", path), re.M)}


def differences(build, program):
    sim_line = link_line(build, program)
    sim = functions(os.path.join(build, program))
    for name in re.findall(r"--wrap[=,](\w+)", sim_line):
        if name not in WRAPPED:
            yield f"{program} replaces {name}"
    own = set()
    for obj in re.findall(r"\S+\.c\.o\b", sim_line):
        own |= functions(os.path.join(build, obj))
    for service in SERVICES:
        line = link_line(build, f"bin/sluice-{service}")
        there, here = archives(line), archives(sim_line)
        linked = functions(os.path.join(build, f"bin/sluice-{service}"))
        for name in sorted(set(there) - WIRING):
            if here.get(name) != there[name]:
                yield f"{program} does not link {there[name]}, which sluice-{service} links"
                continue
            code = functions(os.path.join(build, there[name]))
            lost = sorted(s for s in (code & linked) - sim if not THREAD.match(s)) if name == f"libsl_{service}.a" else []
            if lost:
                yield f"{program} lacks {', '.join(lost[:5])} of sluice-{service}"
            for symbol in sorted(code & own):
                yield f"{program} has a {symbol} of its own beside that of {name}"


def main(args):
    program = args[1] if len(args) > 1 else "bin/sluice-sim"
    found = list(differences(args[0], program))
    print(("not ok " if found else "ok ") + "sim-objects")
    for text in found:
        print("    " + text)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
