#!/usr/bin/env python3
"""carat's text layer against the `tokenizers` package, on one thread each.

usage: bench/text_peer.py -m TOKENIZER.json [-t TEMPLATE.jinja] [-n ROUNDS] FILE...

Runs build/release/bench/bench_text and `tokenizers` by turns over the same files, checks
that both give the same ids, and prints medians.  Files are encoded whole and in documents
of about 4 KB.  The peer's time is that of its faster call, encode or encode_batch.  On a
busy machine the processor times (cpu) tell more than the clock.
Needs: pip install tokenizers.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
from tokenizers import Tokenizer  # noqa: E402

BENCH = os.environ.get("BENCH", "build/release/bench/bench_text")


def conversation(n):
    """n messages: a user asks, the model calls a tool, reads its result and answers."""
    tools = [
        {"type": "function", "function": {
            "name": name, "description": f"Looks up {name.replace('_', ' ')} of a place.",
            "parameters": {"type": "object", "required": ["city"], "properties": {
                "city": {"type": "string", "description": "Name of the city, in English"},
                "days": {"type": "integer", "description": "How many days ahead"},
                "unit": {"type": "string", "enum": ["metric", "imperial"]}}}}}
        for name in ("get_weather", "get_traffic", "get_air_quality", "get_events")
    ]  # fmt: skip
    messages = [{"role": "system", "content": "You are a helpful travel assistant. Be brief."}]
    turn = 0
    while len(messages) < n:
        city, tool = f"City {turn}", tools[turn % 4]["function"]["name"]
        messages += [
            {"role": "user", "content": f"I am planning a trip to {city} next week, and I would "
             "like to know what to expect there. What should I pack, and is it worth renting a car?"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": f"c{turn}", "type": "function", "function": {
                    "name": tool, "arguments": {"city": city, "days": 7, "unit": "metric"}}}]},
            {"role": "tool", "tool_call_id": f"c{turn}", "content": json.dumps(
                {"city": city, "temperature": 18.5 + turn, "wind": "north-west", "rain": False,
                 "hours": [turn, turn + 1, turn + 2], "note": "Light clouds, 20% chance of rain"})},
            {"role": "assistant", "content": f"In {city} it will be mild with light clouds. Pack a "
             "light jacket and comfortable shoes; public transport is good, so you won't need a car."},
        ]  # fmt: skip
        turn += 1
    return {"messages": messages[:n], "tools": tools, "add_generation_prompt": True}


def fnv(ids):
    h = 0xCBF29CE484222325
    for i in ids:
        h = ((h ^ i) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return "%016x" % h


def timed(call, *args):
    """Milliseconds of the clock and of this process, and what the call gives."""
    clock, cpu = time.perf_counter(), time.process_time()
    out = call(*args)
    return (time.perf_counter() - clock) * 1e3, (time.process_time() - cpu) * 1e3, out


def parts_of(text):
    """As bench_text cuts a file: documents of about 4 KB, each ending behind a newline."""
    raw, out, at = text.encode(), [], 0
    while at < len(raw):
        end = raw.find(b"\n", min(at + 4096, len(raw)) - 1)
        end = end + 1 if end >= 0 else len(raw)
        out.append(raw[at:end].decode())
        at = end
    return out


def peer_round(tokenizer, texts):
    """(ms, cpu_ms) of the faster call, for each file as a whole and in parts."""
    row = {}
    for path, text in texts.items():
        parts = parts_of(text)
        whole = [timed(tokenizer.encode, text), timed(tokenizer.encode_batch, [text])]
        many = [timed(lambda: [tokenizer.encode(x) for x in parts]),
                timed(tokenizer.encode_batch, parts)]  # fmt: skip
        ids = whole[0][2].ids
        row[path] = {"": min((w[:2] for w in whole), key=lambda x: x[1]),
                     "parts_": min((m[:2] for m in many), key=lambda x: x[1]),
                     "ids": (len(ids), HASHES.get(path) or fnv(ids))}  # fmt: skip
        HASHES[path] = row[path]["ids"][1]
    return row


HASHES = {}


def main():
    a = argparse.ArgumentParser(description="the text layer against tokenizers")
    a.add_argument("-m", required=True, help="tokenizer.json")
    a.add_argument("-t", help="chat template to render a conversation of 64 messages with")
    a.add_argument("-n", type=int, default=5, help="rounds")
    a.add_argument("file", nargs="*")
    o = a.parse_args()
    texts = {p: open(p, encoding="utf-8", newline="").read() for p in o.file}
    ours, peers, loads = [], [], []
    with tempfile.TemporaryDirectory() as d:
        chat = []
        if o.t:
            request = os.path.join(d, "request.json")
            with open(request, "w", encoding="utf-8") as f:
                json.dump(conversation(64), f)
            chat = ["-t", o.t, "-r", request]
        for _ in range(o.n):
            out = subprocess.run([BENCH, o.m, *chat, *o.file], capture_output=True, text=True)
            if out.returncode:
                sys.exit(out.stderr)
            ours.append([json.loads(x) for x in out.stdout.splitlines()])
            ms, cpu, tokenizer = timed(Tokenizer.from_file, o.m)
            loads.append((ms, cpu))
            peers.append(peer_round(tokenizer, texts))
            del tokenizer
    report(ours, peers, loads)


def versus(what, mine, his):
    ms, cpu, first = (statistics.median(m[k] for m in mine) for k in ("ms", "cpu_ms", "first_cpu_ms"))
    his_ms, his_cpu = (statistics.median(x[k] for x in his) for k in (0, 1))
    print(f"{what}: {ms:.2f} ms (cpu {cpu:.2f}, first {first:.2f}), tokenizers {his_ms:.1f} ms "
          f"(cpu {his_cpu:.1f}): {his_ms / ms:.1f} times (cpu {his_cpu / cpu:.1f}, first "
          f"{his_cpu / first:.1f})")  # fmt: skip


def report(ours, peers, loads):
    for i, row in enumerate(ours[0]):
        rows = [r[i] for r in ours]
        if row["what"] == "load":
            versus("load", rows, loads)
            print(f"  peak {max(r['peak_mb'] for r in rows):.1f} MB")
        elif row["what"] == "chat":
            m = {k: statistics.median(r[k] for r in rows)
                 for k in ("ms", "cpu_ms", "first_cpu_ms", "render_ms", "render_cpu_ms")}  # fmt: skip
            print(f"64 messages: {m['ms']:.3f} ms (cpu {m['cpu_ms']:.3f}, first "
                  f"{m['first_cpu_ms']:.3f}), of it render {m['render_ms']:.3f} (cpu "
                  f"{m['render_cpu_ms']:.3f}); {row['bytes']} bytes, {row['ids']} ids")  # fmt: skip
        else:
            name = os.path.basename(row["file"])
            same = (row["ids"], row["hash"]) == peers[0][row["file"]]["ids"]
            print(f"{name}: {row['bytes']} bytes, {row['ids']} ids, {'equal' if same else 'NOT EQUAL'}")
            for how, key in (("whole", ""), ("in parts", "parts_")):
                mine = [{k: r[key + k] for k in ("ms", "cpu_ms", "first_cpu_ms")} for r in rows]
                versus("  " + how, mine, [p[row["file"]][key] for p in peers])
            if not same:
                sys.exit(1)


main()
