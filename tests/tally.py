#!/usr/bin/env python3
"""Adds up what the programs of a ctest run counted: Criterion's synthesis, a line "N passed, N failed" or
the simulator's "N seeds, N violated".

  tally.py JUNIT    prints the slowest programs, what went wrong, and "N passed, N failed"; exit 1 if something failed

A program that failed without counting a failure (a sanitizer spoke, it crashed), or that ran no test, counts as one failure.
"""
import re
import sys
import xml.etree.ElementTree as ET


def count(case):
    text = "".join(case.findtext("system-out") or "")
    synthesis = re.findall(r"Synthesis: Tested: (\d+) \| Passing: (\d+) \| Failing: (\d+) \| Crashing: (\d+)", text)
    plain = re.findall(r"^(\d+) passed, (\d+) failed$", text, flags=re.M)
    seeds = re.findall(r"^(\d+) seeds, (\d+) violated(?:, (\d+) not judged)?\b", text, flags=re.M)
    if synthesis:
        tested, passed = int(synthesis[-1][0]), int(synthesis[-1][1])
        failed = tested - passed
    elif plain:
        passed, failed = map(int, plain[-1])
    elif seeds:
        total, failed, unjudged = (int(n or 0) for n in seeds[-1])
        passed = total - failed - unjudged
    else:
        passed = failed = 0
    if case.get("status") != "run" and failed == 0:
        return passed, 1, "failed, though it counted no failure"
    if passed + failed == 0:
        return 0, 1, "ran no test"
    return passed, failed, None


def main(path):
    cases = list(ET.parse(path).getroot().iter("testcase"))
    passed = failed = 0
    for case in cases:
        ok, bad, note = count(case)
        passed, failed = passed + ok, failed + bad
        if bad:
            print("not ok %s: %d passed, %d failed%s" % (case.get("name"), ok, bad, ": " + note if note else ""))
    for case in sorted(cases, key=lambda c: -float(c.get("time")))[:5]:
        print("%6.1f s  %s" % (float(case.get("time")), case.get("name")))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
