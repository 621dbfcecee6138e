#!/usr/bin/env python3
"""The house rules that a compiler does not check.

  tidy.py ROOT [--ctest FILE]   one line per rule: "ok RULE" or "not ok RULE" with each place; exit 1 if a rule is broken
  --rules                       only the names of the rules
  --ctest FILE                  the output of `ctest -N`: every test program must be in it

To add a rule, write a function that yields (file, line, text), list it in RULES, and add a sample that breaks it
(samples/RULE/...); run.sh shows that each sample is caught.
"""
import os
import re
import subprocess
import sys
from collections import namedtuple

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 800
TEST_LINES_MAX = 1000

Source = namedtuple("Source", "path text code")

# --- layers ---

# Folder -> own folders that its files may include besides their own. A service may include all of common but adapters.
LAYERS = {
    "common/base": [],
    "common/model": ["common/base"],
    "common/expr": ["common/base", "common/model"],
    "common/dsl": ["common/base", "common/model", "common/expr"],
    "common/engine": ["common/base", "common/model", "common/expr"],
    "common/ports": ["common/base"],
    "common/codec": ["common/base", "common/model", "common/ports"],
    "common/adapters/memory": ["common/base", "common/ports"],
    "common/adapters/uv": ["common/base", "common/ports"],
    "common/adapters": ["common/base", "common/ports", "common/adapters/uv"],
    "common/app": ["common/base", "common/ports", "common/adapters/uv"],
}
SERVICES_MAY = ["common/" + d for d in ("base", "model", "expr", "dsl", "engine", "ports", "codec", "app")] + ["services/common"]
# Where the ports meet their adapters.
WIRING = r"services/\w+/main\.c|services/common/(connect|host)\.[ch]|services/cli/.*"
# Single headers that another layer may use besides: plain numbers, no code.
ALLOWED = {("common/app/limits.h", "common/engine/engine.h")}

# Headers of libraries -> the files that may include them.
LIBRARIES = [
    (r"uv\.h", r"common/(adapters|app)/.*|" + WIRING),
    (r"(librdkafka|hiredis|curl)/.*", r"common/adapters/.*"),
    (r"jq\.h", r"common/expr/.*"),
    (r"jv\.h", r"common/model/.*"),
    (r"avro.*", r"common/codec/.*"),
    (r"libfyaml\.h", r"common/(dsl|app)/.*"),
    (r"microhttpd\.h", r"common/app/.*"),
    (r"jansson\.h", r"common/app/.*|services/cli/.*"),
]

# --- calls ---

BANNED = {
    "strcpy": "snprintf or sl_buf", "strcat": "sl_buf", "sprintf": "snprintf", "vsprintf": "vsnprintf",
    "strtok": "strcspn", "gets": "fgets", "alloca": "the arena",
}
# Fine in a test, where the text is ours.
UNPARSED = {"atoi": "sl_int_parse or strtol", "atol": "sl_int_parse or strtol", "atoll": "sl_int_parse or strtol", "atof": "strtod"}
# What is a function of its arguments only: no clock, no chance, no environment, no output.
PURE = r"common/(model|engine|dsl|codec)/"
IMPURE = ("time gettimeofday clock_gettime clock localtime localtime_r mktime rand random srand drand48 getrandom getenv setenv "
          "getpid sleep usleep nanosleep printf vprintf fprintf puts fopen open uuid_generate uuid_generate_random").split()
ALLOCATE = r"(?:malloc|calloc|realloc|strdup|strndup)"

# --- texts ---

MARKER = r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b"
MACHINE_PATH = r"(?<![\w.*}/])(?<![\w}]\")/(?:work|root|home/\w+)(?:/|\b)|/tmp/(?:[a-z]+_jobs|build)\b"
# Hosts that a text may name: reserved names, addresses, names without a dot, placeholders, and the homes of the standards.
HOST = (r"[\w${}%-]*|.*[${}%<>].*|[\d.]+|\[.*|.*\.(?:example|test|invalid|localhost|local)|(?:.*\.)?example\.(?:com|org|net)|"
        r"(?:.*\.)?(?:apache\.org|w3\.org|cloudevents\.io|serverlessworkflow\.io|json-schema\.org|openapis\.org|ietf\.org|"
        r"rfc-editor\.org|semver\.org|swagger\.io|schema\.org|my\.api\.org|evil\.com)|(?:www\.)?github\.com|host\.docker\.internal")
MENTIONED = r"(?:common|services|proto|deploy|docs|examples|tests|cmake)/[\w./*-]+"


def strip(text):
    """Comments and literals become blanks; lines stay where they are."""
    def blank(m):
        return re.sub(r"[^\n]", " ", m.group())
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", blank, text, flags=re.S)


def line_of(text, at):
    return text.count("\n", 0, at) + 1


class Tree:
    def __init__(self, root, ctest):
        self.root = root
        self.ctest = ctest
        self.texts, self.sources = {}, []
        for path in self.list():
            try:
                with open(os.path.join(root, path), encoding="utf-8") as file:
                    text = file.read()
            except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
                continue
            self.texts[path] = text
            if path.endswith((".c", ".h")):
                self.sources.append(Source(path, text, strip(text)))

    def list(self):
        """What git tracks or would track; without git, all there is."""
        if os.path.exists(os.path.join(self.root, ".git")):
            out = subprocess.run(["git", "-C", self.root, "ls-files", "-co", "--exclude-standard"], check=True,
                                 capture_output=True, text=True).stdout.splitlines()
        else:
            out = [os.path.relpath(os.path.join(folder, name), self.root)
                   for folder, _, names in os.walk(self.root) for name in names]
        others = ("tests/tidy/samples/", "tests/fuzz/corpus/", "tests/fuzz/crashes/", "build/")
        return sorted(p for p in out if not p.startswith(others))


def opening_comment(tree):
    for path, text, _ in tree.sources:
        if not re.match(r"/\*\s*\S", text):
            yield path, 1, "opens without a comment that tells its purpose"


def function_length(tree):
    for path, _, code in tree.sources:
        start = 0
        lines = code.split("\n")
        for n, line in enumerate(lines, 1):
            if line.startswith("{"):
                start = n
            elif line.startswith("}") and start:
                if n - start + 1 > FUNCTION_LINES_MAX and "(" in lines[start - 2]:
                    name = lines[start - 2].split("(")[0].split()[-1].lstrip("*")
                    yield path, start, f"{name} has {n - start + 1} lines, more than {FUNCTION_LINES_MAX}"
                start = 0


def file_length(tree):
    for path, text, _ in tree.sources:
        count = text.count("\n")
        limit = TEST_LINES_MAX if path.startswith("tests/") else FILE_LINES_MAX
        if count > limit:
            yield path, 1, f"{count} lines, more than {limit}"


def own_include(path, header):
    folder = os.path.dirname(path)
    target = os.path.dirname(header)
    if target == folder or (path, header) in ALLOWED:
        return True
    if folder.startswith("services/"):
        return target in SERVICES_MAY or bool(re.fullmatch(WIRING, path))
    while folder and folder not in LAYERS:
        folder = os.path.dirname(folder)
    return target in LAYERS.get(folder, [])


def layer(tree):
    for path, text, _ in tree.sources:
        if not path.startswith(("common/", "services/")):
            continue
        for m in re.finditer(r'^[ \t]*#[ \t]*include[ \t]+[<"]([^>"]+)[>"]', text, flags=re.M):
            header, line = m.group(1), line_of(text, m.start())
            if header.startswith(("common/", "services/")):
                if not own_include(path, header):
                    yield path, line, f"{os.path.dirname(path)} must not include {header}"
            for pattern, where in LIBRARIES:
                if re.fullmatch(pattern, header) and not re.fullmatch(where, path):
                    yield path, line, f"{header} is for {where.split('|')[0].rstrip('.*/')} only"


def calls(code, names):
    for m in re.finditer(r"(?<![\w.>])(%s)\s*\(" % "|".join(names), code):
        yield m.group(1), line_of(code, m.start())


def banned_call(tree):
    for path, _, code in tree.sources:
        banned = BANNED if path.startswith("tests/") else {**BANNED, **UNPARSED}
        for name, line in calls(code, banned):
            yield path, line, f"{name} is banned; use {banned[name]}"


def impure_call(tree):
    for path, _, code in tree.sources:
        if re.match(PURE, path):
            for name, line in calls(code, IMPURE):
                yield path, line, f"{name}: this layer takes time, chance and memory as arguments and prints nothing"


def unchecked_alloc(tree):
    """In the engine memory is state or taken from the caller; where state grows, the result is looked at within three lines."""
    for path, _, code in tree.sources:
        if not path.startswith(("common/engine/", "common/model/")):
            continue
        lines = code.split("\n")
        for m in re.finditer(r"([\w.>\[\]-]+)\s*=\s*[^;=]*?\b" + ALLOCATE + r"\s*\(", code):
            line = line_of(code, m.end())
            after = "\n".join(lines[line - 1:line + 4])
            name = re.escape(m.group(1).split("->")[-1].split(".")[-1])
            if not re.search(r"!\s*[\w.>\[\]-]*%s\b|(?:sl_assert|if|return)\s*\(?[^;]*\b%s\b|\b%s\s*\?" % (name, name, name), after):
                yield path, line, f"the result of this allocation ({m.group(1)}) is not checked"


def marker(tree):
    for path, text in tree.texts.items():
        for m in re.finditer(MARKER, text):
            yield path, line_of(text, m.start()), f"{m.group(1)}: do it or file an issue"


def machine_path(tree):
    for path, text in tree.texts.items():
        for m in re.finditer(MACHINE_PATH, text):
            yield path, line_of(text, m.start()), f"{m.group()} is a path of one machine"


def unknown_host(tree):
    for path, text in tree.texts.items():
        if path == "LICENSE":
            continue
        for m in re.finditer(r"\b(?:https?|ftp)://(?:[^\s/@\"'`]*@)?([^\s/:?#\"'`)>,;\\]*)", text):
            if not re.fullmatch(HOST, m.group(1).rstrip(".").lower()):
                yield path, line_of(text, m.start()), f"{m.group(1)}: use a reserved name such as service.example"


def exists(tree, path):
    pattern = re.escape(path.rstrip("/")).replace(r"\*", "[^/]*")
    return any(re.match(pattern + r"(/|$)", p) for p in tree.texts) or os.path.exists(os.path.join(tree.root, path))


def missing_path(tree):
    """What a page mentions is there: links, and repository paths in back quotes."""
    if "README.md" not in tree.texts:
        yield "README.md", 1, "is missing"
    for path, text in tree.texts.items():
        if not path.endswith(".md"):
            continue
        for m in re.finditer(r"\]\((?!\w+:|#)([^)#\s]+)", text):
            target = os.path.normpath(os.path.join(os.path.dirname(path), m.group(1)))
            if not exists(tree, target):
                yield path, line_of(text, m.start()), f"links to {m.group(1)}, which is not there"
        for m in re.finditer(r"`(" + MENTIONED + r")`", text):
            if not exists(tree, m.group(1)):
                yield path, line_of(text, m.start()), f"mentions {m.group(1)}, which is not there"


def ctest_entry(tree):
    """A test program that CMake does not know would never run."""
    if tree.ctest is None:
        return
    known = set(re.findall(r"Test\s+#\d+: (\S+)", tree.ctest))
    for path in tree.texts:
        m = re.fullmatch(r"tests/(unit/\w+/test_\w+|contract/test_\w+)\.c", path)
        name = m and m.group(1).replace("contract/test_", "contract/")
        if m and name not in known:
            yield path, 1, f"no ctest entry {name}; see sl_unit_tests in CMakeLists.txt"


RULES = [opening_comment, function_length, file_length, layer, banned_call, impure_call, unchecked_alloc, marker, machine_path,
         unknown_host, missing_path, ctest_entry]


def main(args):
    root, ctest = args[0], None
    if "--rules" in args:
        print("\n".join(rule.__name__.replace("_", "-") for rule in RULES))
        return 0
    if "--ctest" in args and os.path.exists(args[args.index("--ctest") + 1]):
        with open(args[args.index("--ctest") + 1], encoding="utf-8") as file:
            ctest = file.read()
    tree = Tree(root, ctest)
    broken = 0
    for rule in RULES:
        name = rule.__name__.replace("_", "-")
        found = list(rule(tree))
        print(("not ok " if found else "ok ") + name)
        for path, line, text in found:
            print(f"    {path}:{line}: {text}")
        broken += bool(found)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
