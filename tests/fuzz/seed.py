#!/usr/bin/env python3
"""Writes raw seeds for the fuzz targets out of scenarios, unit tests, fixtures and examples.

  seed.py OUT     one folder a target; `run.sh --merge OUT` then keeps what reaches new code (needs PyYAML)

The seeds of "state" come from the program fuzz_seeds, which runs flows/ and writes down every step.
"""
import glob
import hashlib
import json
import os
import re
import struct
import sys

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def put(out, target, data):
    data = data if isinstance(data, bytes) else data.encode("utf-8", "surrogateescape")
    folder = os.path.join(out, target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, hashlib.sha1(data).hexdigest()), "wb") as file:
        file.write(data)


def c_strings(pattern):
    """Every literal of C sources; neighbours are one."""
    for path in sorted(glob.glob(os.path.join(ROOT, pattern))):
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
        for m in re.finditer(r'"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*', text):
            parts = re.findall(r'"((?:\\.|[^"\\\n])*)"', m.group())
            raw = "".join(parts).encode()
            yield raw.decode("unicode_escape").encode("latin-1")


def scenarios():
    for pattern in ("tests/scenarios/**/*.yaml", "tests/fuzz/flows/*.yaml", "examples/**/*.scenario.yaml"):
        for path in sorted(glob.glob(os.path.join(ROOT, pattern), recursive=True)):
            with open(path, encoding="utf-8") as file:
                yield path, yaml.safe_load(file)


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for v in value.values():
            yield from strings(v)
    elif isinstance(value, list):
        for v in value:
            yield from strings(v)


def definitions(out, doc, n):
    all_of = [doc.get("definition")] + (doc.get("extra_definitions") or [])
    for d in all_of:
        if isinstance(d, str):
            put(out, "definition", d)
        elif isinstance(d, dict) and "file" not in d:
            text = yaml.safe_dump(d, sort_keys=False, allow_unicode=True) if n % 2 else json.dumps(d, ensure_ascii=False)
            put(out, "definition", text)
        for s in strings(d):
            if "${" in s:
                put(out, "expression", "os\n" + s)
                put(out, "evaluate", json.dumps(doc.get("input") or {}) + "\n" + s)
    for uri, content in (doc.get("files") or {}).items():
        text = content if isinstance(content, str) else json.dumps(content)
        put(out, "openapi" if "paths" in text else "definition", text)


# --- Avro, as far as the seeds need it ---

def a_long(n):
    n = (n << 1) ^ (n >> 63)
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def a_bytes(text):
    data = text if isinstance(text, bytes) else text.encode()
    return a_long(len(data)) + data


def a_attribute(value):
    if isinstance(value, bool):
        return a_long(1) + bytes([value])
    if isinstance(value, int):
        return a_long(2) + a_long(value)
    return a_long(3) + a_bytes(str(value))


def avro_event(ev):
    attributes = {k: v for k, v in ev.items() if k != "data"}
    out = a_long(len(attributes))
    for name, value in attributes.items():
        out += a_bytes(name) + a_attribute(value)
    data = ev.get("data")
    return out + a_long(0) + (a_long(1) if data is None else a_long(0) + a_bytes(json.dumps(data)))


def avro_value(schema, names, n):
    """Any value of a schema, a little different for each n."""
    if isinstance(schema, list):
        recursive = any(isinstance(b, str) and b in names for b in schema)
        branch = 0 if recursive else n % len(schema)
        return a_long(branch) + avro_value(schema[branch], names, n // 2)
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind in names:
        return avro_value(names[kind], names, n)
    if kind == "record":
        names[schema["name"]] = schema
        return b"".join(avro_value(f["type"], names, 1 + n % 31 if f["name"] == "kind" else n + i)
                        for i, f in enumerate(schema["fields"]))
    return {"null": lambda: b"", "int": lambda: a_long(n), "long": lambda: a_long(n * 1000), "boolean": lambda: bytes([n & 1]),
            "string": lambda: a_bytes("\"s\""), "bytes": lambda: a_bytes('{"a":[%d]}' % n), "double": lambda: struct.pack("<d", n),
            "float": lambda: struct.pack("<f", n), "fixed": lambda: b"x" * schema["size"], "enum": lambda: a_long(0),
            "array": lambda: a_long(1) + avro_value(schema["items"], names, n) + a_long(0),
            "map": lambda: a_long(1) + a_bytes("k") + avro_value(schema["values"], names, n) + a_long(0)}[kind]()


def events(out, doc, n):
    for entry in doc.get("events") or []:
        ev = {"specversion": "1.0", "id": "1", "source": "scenario", **(entry.get("event") or {})}
        try:
            text = json.dumps(ev)
        except TypeError:
            continue
        put(out, "event", "content-type: application/cloudevents+json\n\n" + text)
        if n % 3 == 0:
            put(out, "event", b"content-type: application/cloudevents+avro\n\n" + avro_event(ev))
        if n % 3 == 1:
            heads = "".join(f"ce_{k}: {v}\n" for k, v in ev.items() if k != "data")
            put(out, "event", heads + "content-type: application/json\n\n" + json.dumps(ev.get("data")))


def messages(out):
    for path in glob.glob(os.path.join(ROOT, "proto/fixtures/*/*.bin")):
        with open(path, "rb") as file:
            data = file.read()
        put(out, "message", data)
        put(out, "message", a_bytes(data) + a_bytes("0.1") + a_bytes(data) + a_bytes(""))
    with open(os.path.join(ROOT, "tests/fuzz/schema-other.avsc"), encoding="utf-8") as file:
        schema = json.load(file)
    for n in range(20):
        put(out, "message", b"\xc3\x01" + struct.pack("<Q", 1) + avro_value(schema, {}, n))


def main(out):
    for n, (_, doc) in enumerate(scenarios()):
        definitions(out, doc, n)
        events(out, doc, n)
    messages(out)
    for text in c_strings("tests/unit/expr/test_*.c"):
        for how in (b"os", b"c", b"p", b"of\n.a | (.b)"):
            put(out, "expression", how + b"\n" + text)
        for data in (b'{"a":[1,2,3],"s":"x"}', b'[1,"a",null]', b'"2024-01-01T00:00:00Z"'):
            put(out, "evaluate", data + b"\n" + text)
    for pattern in ("tests/unit/base/test_text.c", "tests/unit/dsl/test_lower.c"):
        for text in c_strings(pattern):
            put(out, "text", text[:200] + b"\n" + text[:50])
    for text in c_strings("tests/unit/dsl/test_openapi.c"):
        put(out, "openapi", text)
    for pattern in ("tests/unit/dsl/test_*.c", "tests/unit/engine/test_*.c"):
        for text in c_strings(pattern):
            put(out, "definition", text)
    for text in c_strings("tests/unit/app/test_config.c"):
        put(out, "config", text)
        put(out, "config", b"---env\n" + text)
    with open(os.path.join(ROOT, "common/app/config.def"), encoding="utf-8") as file:
        rows = re.findall(r'^C\(\w+,\s*\w+,\s*"([^"]+)",\s*"([^"]*)"', file.read(), flags=re.M)
    put(out, "config", "".join(f'{name}: "{value}"\n' for name, value in rows))
    put(out, "config", "---env\n" + "".join(f"SLUICE_{n.upper().replace('.', '_')}={v}\n" for n, v in rows[:45]))
    for text in c_strings("tests/unit/codec/test_event.c"):
        put(out, "event", b"content-type: application/cloudevents+json\n\n" + text)
        put(out, "event", text)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
