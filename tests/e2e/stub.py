#!/usr/bin/env python3
"""HTTP stub for tests: well-behaved and misbehaving services behind one port, with a log of every call.

    stub.py --port-file FILE --log FILE [--log-ends] [--port N] [--host 127.0.0.1]

The port (a free one by default) is written to the port file once the server listens. Each call becomes one JSON line
in the log, written before the answer: time_ms, method, path, query, key (Idempotency-Key), attempt (Sluice-Attempt), instance
(Sluice-Instance), traceparent, headers, body (parsed when it is JSON). With --log-ends an answer that was sent becomes a line
too: done (true), time_ms, key, attempt, path. SIGTERM ends it.

    /ok                 200 {"ok": true}
    /echo               200 {method, path, query, headers, body}
    /mirror             200 with the request's body and content type
    /value?json=...     200 with that JSON text as body
    /text?say=...       200 text/plain
    /type?is=T&body=B   200 with that content type and body; is=none: without one
    /empty              204
    /slow?ms=N          as /mirror (or {"ok": true} without a body) after N milliseconds
    /hold/NAME          as /mirror, but not before /open/NAME is called
    /open/NAME          lets go what /hold/NAME holds and will hold
    /status/N           status N; ?problem=1: application/problem+json; ?body=...: that text
    /flaky?fail=N       503 for the first N calls of each Idempotency-Key (default 1), then as /mirror
    /garbage            200 application/json that is not JSON
    /deep?levels=N      200 JSON nested N deep
    /huge?bytes=N       200 JSON string of N bytes (default 64 MiB), streamed
    /cut                200 that promises more bytes than it sends, then closes
    /drop               closes without an answer
    /nonsense           bytes that are no HTTP
    /redirect?to=URL    302 (or ?status=N) to URL
    /loop               302 to itself
    /never              reads the request and never answers
    anything else       200 {"ok": true, "path": ..., "body": ...}
"""
import argparse
import asyncio
import json
import os
import signal
import sys
import time
from urllib.parse import parse_qs, unquote, urlsplit

LIMIT = 64 * 1024 * 1024


class Stub:
    def __init__(self, log, log_ends=False):
        self.log, self.log_ends = log, log_ends
        self.calls_of_key = {}
        self.gates = {}

    def write_end(self, call):
        headers = call["headers"]
        if self.log and self.log_ends:
            entry = {"done": True, "time_ms": int(time.time() * 1000), "key": headers.get("idempotency-key"),
                     "attempt": int(headers.get("sluice-attempt", 0)), "path": call["path"]}
            self.log.write(json.dumps(entry, separators=(",", ":")) + "\n")
            self.log.flush()

    def write_log(self, call):
        headers = call["headers"]
        entry = {
            "time_ms": int(time.time() * 1000),
            "method": call["method"],
            "path": call["path"],
            "query": call["query"],
            "key": headers.get("idempotency-key"),
            "attempt": int(headers["sluice-attempt"]) if headers.get("sluice-attempt", "").isdigit() else None,
            "instance": headers.get("sluice-instance"),
            "traceparent": headers.get("traceparent"),
            "headers": headers,
            "body": call["body"],
        }
        if self.log:
            self.log.write(json.dumps(entry, separators=(",", ":")) + "\n")
            self.log.flush()

    async def answer(self, call, writer):
        """Gives (status, content type or None, body bytes, extra headers), or None when the connection must close."""
        name = call["path"].split("/")[1] if "/" in call["path"] else ""
        query = call["query"]
        handler = getattr(self, "on_" + name, None)
        if handler:
            return await handler(call, query, writer)
        return 200, "application/json", dump({"ok": True, "path": call["path"], "body": call["body"]}), {}

    async def on_ok(self, call, query, writer):
        return 200, "application/json", b'{"ok":true}', {}

    async def on_echo(self, call, query, writer):
        seen = {k: call[k] for k in ("method", "path", "query", "headers", "body")}
        return 200, "application/json", dump(seen), {}

    async def on_mirror(self, call, query, writer):
        if not call["raw"]:
            return 200, "application/json", b'{"ok":true}', {}
        return 200, call["headers"].get("content-type", "application/json"), call["raw"], {}

    async def on_value(self, call, query, writer):
        return 200, "application/json", query.get("json", "null").encode(), {}

    async def on_text(self, call, query, writer):
        return 200, "text/plain; charset=utf-8", query.get("say", "hello").encode(), {}

    async def on_type(self, call, query, writer):
        kind = query.get("is", "text/html")
        return 200, None if kind == "none" else kind, query.get("body", "<p>hello</p>").encode(), {}

    async def on_empty(self, call, query, writer):
        return 204, None, b"", {}

    async def on_slow(self, call, query, writer):
        await asyncio.sleep(int(query.get("ms", "1000")) / 1000)
        return await self.on_mirror(call, query, writer)

    def gate(self, call):
        return self.gates.setdefault(call["path"].split("/", 2)[2], asyncio.Event())

    async def on_hold(self, call, query, writer):
        await self.gate(call).wait()
        return await self.on_mirror(call, query, writer)

    async def on_open(self, call, query, writer):
        self.gate(call).set()
        return await self.on_ok(call, query, writer)

    async def on_status(self, call, query, writer):
        status = int(call["path"].split("/")[2])
        if query.get("problem"):
            body = {"type": "https://example.com/problems/stub", "title": "The stub refuses", "status": status,
                    "detail": "asked to answer %d" % status}
            return status, "application/problem+json", dump(body), {}
        return status, "text/plain", query.get("body", "status %d" % status).encode(), {}

    async def on_flaky(self, call, query, writer):
        key = call["headers"].get("idempotency-key", call["path"])
        self.calls_of_key[key] = self.calls_of_key.get(key, 0) + 1
        if self.calls_of_key[key] <= int(query.get("fail", "1")):
            return 503, "text/plain", b"not yet", {}
        return await self.on_mirror(call, query, writer)

    async def on_garbage(self, call, query, writer):
        return 200, "application/json", b'{"broken": [1, 2,', {}

    async def on_deep(self, call, query, writer):
        levels = int(query.get("levels", "1000"))
        return 200, "application/json", b"[" * levels + b"]" * levels, {}

    async def on_huge(self, call, query, writer):
        left = int(query.get("bytes", str(LIMIT)))
        head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (left + 2)
        writer.write(head.encode() + b'"')
        while left > 0:
            part = min(left, 65536)
            writer.write(b"x" * part)
            await writer.drain()
            left -= part
        writer.write(b'"')
        await writer.drain()
        return None

    async def on_cut(self, call, query, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"half\":")
        await writer.drain()
        return None

    async def on_drop(self, call, query, writer):
        return None

    async def on_nonsense(self, call, query, writer):
        writer.write(b"\x00\x01\x02 this is not HTTP\r\n\r\n")
        await writer.drain()
        return None

    async def on_redirect(self, call, query, writer):
        return int(query.get("status", "302")), "text/plain", b"over there", {"Location": query.get("to", "/ok")}

    async def on_loop(self, call, query, writer):
        return 302, "text/plain", b"again", {"Location": "/loop"}

    async def on_never(self, call, query, writer):
        await asyncio.sleep(24 * 3600)
        return None


def dump(value):
    return json.dumps(value, separators=(",", ":")).encode()


async def read_call(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    method, target, _ = lines[0].split(" ", 2)
    headers = {}
    for line in lines[1:]:
        if ":" in line:
            name, value = line.split(":", 1)
            headers[name.strip().lower()] = value.strip()
    raw = b""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        while True:
            size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
            raw += await reader.readexactly(size)
            await reader.readexactly(2)
            if size == 0:
                break
    elif int(headers.get("content-length", "0")):
        raw = await reader.readexactly(int(headers["content-length"]))
    body = None
    if raw:
        try:
            body = json.loads(raw)
        except ValueError:
            body = raw.decode("utf-8", "replace")
    parts = urlsplit(target)
    query = {k: v[0] if len(v) == 1 else v for k, v in parse_qs(parts.query, keep_blank_values=True).items()}
    return {"method": method, "path": unquote(parts.path), "query": query, "headers": headers, "raw": raw, "body": body}


async def serve(stub, reader, writer):
    try:
        while True:
            call = await read_call(reader)
            stub.write_log(call)
            answer = await stub.answer(call, writer)
            if answer is None:
                break
            status, kind, body, extra = answer
            head = "HTTP/1.1 %d Stub\r\n" % status
            if kind:
                head += "Content-Type: %s\r\n" % kind
            if status != 204 and status != 304:
                head += "Content-Length: %d\r\n" % len(body)
            for name, value in extra.items():
                head += "%s: %s\r\n" % (name, value)
            writer.write(head.encode("latin-1") + b"\r\n" + (b"" if call["method"] == "HEAD" else body))
            await writer.drain()
            stub.write_end(call)
            if call["headers"].get("connection", "").lower() == "close":
                break
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError, asyncio.CancelledError):
        pass
    finally:
        writer.close()


async def main():
    parser = argparse.ArgumentParser(description="HTTP stub for tests")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file")
    parser.add_argument("--log")
    parser.add_argument("--log-ends", action="store_true")
    args = parser.parse_args()
    log = open(args.log, "a", encoding="utf-8") if args.log else None
    stub = Stub(log, args.log_ends)
    server = await asyncio.start_server(lambda r, w: serve(stub, r, w), args.host, args.port, limit=LIMIT, backlog=1024)
    port = server.sockets[0].getsockname()[1]
    if args.port_file:
        with open(args.port_file + ".tmp", "w", encoding="ascii") as out:
            out.write("%d\n" % port)
        os.rename(args.port_file + ".tmp", args.port_file)
    else:
        print(port, flush=True)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()
    server.close()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
