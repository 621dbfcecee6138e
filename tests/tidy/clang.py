#!/usr/bin/env python3
"""Every file once through clang (warnings are errors), all but tests through clang-tidy, from compile_commands.json.

  clang.py BUILD clang|clang-tidy [FILE...]   "ok NAME" or "not ok NAME" with what was said; exit 1 if something was said

A file that was clean is not looked at again until it, one of our headers it includes, its command or .clang-tidy changes;
BUILD/tidy remembers that.
"""
import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))

# A fifth of the analyzer's usual budget a function: the whole tree in a minute or two, and the same findings when we compared.
ANALYZER = ["-Xclang", "-analyzer-config", "-Xclang", "max-nodes=40000"]


def digest(paths, words):
    sha = hashlib.sha256("\0".join(words).encode())
    for path in sorted(paths):
        try:
            with open(path, "rb") as file:
                sha.update(path.encode() + b"\0" + file.read())
        except FileNotFoundError:
            return None
    return sha.hexdigest()


def flags(entry):
    """The compiler's words without the compiler, a launcher before it, its output and what only gcc's run needs."""
    words = shlex.split(entry["command"]) if "command" in entry else list(entry["arguments"])
    while words and not words[0].startswith("-"):
        words.pop(0)
    out, skip = [], False
    for word in words:
        if skip or word in ("-c", "-no-pie", entry["file"]) or word.startswith("-fsanitize") or word.startswith("-fno-sanitize"):
            skip = False
        elif word == "-o":
            skip = True
        else:
            out.append(word)
    return out


def headers(deps):
    with open(deps, encoding="utf-8") as file:
        words = file.read().replace("\\\n", " ").split()[1:]
    return [w for w in map(os.path.realpath, words) if w.startswith(ROOT + os.sep)]


def errors(said):
    """Without the notes that lead to each error: the tool itself, run on the one file, prints them."""
    out, keep = [], False
    for line in said.splitlines():
        if re.match(r"\S+:\d+:\d+: ", line):
            keep = ": note: " not in line
        if keep and not re.fullmatch(r"\d+ (error|warning)s? generated\.", line):
            out.append(line)
    return "\n".join(out)


def check(build, tool, entry):
    """Returns what the tool said, or nothing."""
    file, words = entry["file"], flags(entry)
    base = os.path.join(build, "tidy", tool + "-" + hashlib.sha256(file.encode()).hexdigest()[:16])
    config = os.path.join(ROOT, ".clang-tidy")
    try:
        with open(base + ".ok", encoding="utf-8") as known:
            seen, *paths = known.read().split("\n")
        if seen == digest(paths, words):
            return ""
    except FileNotFoundError:
        pass
    syntax = ["clang", *words, "-fsyntax-only", "-MMD", "-MF", base + ".d", file]
    command = syntax if tool == "clang" else ["clang-tidy", "--quiet", "--config-file=" + config, file, "--", *words, *ANALYZER]
    done = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True)
    if done.returncode:
        return errors(done.stdout + (done.stderr if tool == "clang" else "")) or done.stdout + done.stderr
    if tool != "clang":
        subprocess.run(syntax, cwd=entry["directory"], capture_output=True)
    if not os.path.exists(base + ".d"):
        return ""
    paths = [file, config, *headers(base + ".d")]
    with open(base + ".ok", "w", encoding="utf-8") as known:
        known.write("\n".join([digest(paths, words) or "", *paths]))
    return ""


def main(args):
    build, tool, only = os.path.realpath(args[0]), args[1], [os.path.realpath(p) for p in args[2:]]
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        entries = {e["file"]: e for e in json.load(file)}
    if only:
        # a file that is not built, as our samples, is compiled like a file of the engine
        model = next(e for e in entries.values() if "/common/engine/" in e["file"])
        entries = {p: entries.get(p) or {**model, "file": p, "command": model["command"].replace(model["file"], p)} for p in only}
    elif tool == "clang-tidy":
        entries = {p: e for p, e in entries.items() if not p.startswith(ROOT + "/tests/")}
    os.makedirs(os.path.join(build, "tidy"), exist_ok=True)
    said = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, text in zip(entries, pool.map(lambda e: check(build, tool, e), entries.values())):
            if text:
                said[path] = text
    print(("not ok " if said else "ok ") + f"{tool} ({len(entries)} files)")
    for text in said.values():
        print("    " + text.replace("\n", "\n    "))
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
