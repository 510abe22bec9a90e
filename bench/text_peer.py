#!/usr/bin/env python3
"""carat's text layer against the `tokenizers` package, on one thread each.

usage: bench/text_peer.py -m TOKENIZER.json [-t TEMPLATE.jinja] [-n ROUNDS] FILE...

Runs build/release/bench/bench_text and `tokenizers` by turns over the same files, checks
that both give the same ids, and prints medians.  The peer's time is that of its faster
call, encode or encode_batch.  Needs: pip install tokenizers.
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
    begin = time.perf_counter()
    out = call(*args)
    return (time.perf_counter() - begin) * 1e3, out


def peer_round(tokenizer, texts):
    ms = {}
    for path, text in texts.items():
        one, e = timed(lambda t: tokenizer.encode(t), text)
        many, _ = timed(lambda t: tokenizer.encode_batch([t]), text)
        ms[path] = (one, many, len(e.ids), fnv(e.ids) if path not in HASHES else HASHES[path])
        HASHES[path] = ms[path][3]
    return ms


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
            ms, tokenizer = timed(Tokenizer.from_file, o.m)
            loads.append(ms)
            peers.append(peer_round(tokenizer, texts))
            del tokenizer
    report(ours, peers, loads)


def report(ours, peers, loads):
    med = statistics.median
    for i, row in enumerate(ours[0]):
        ms = med(r[i]["ms"] for r in ours)
        if row["what"] == "load":
            peer = med(loads)
            print(f"load: {ms:.1f} ms, tokenizers {peer:.1f} ms: {peer / ms:.2f} times; "
                  f"peak {max(r[i]['peak_mb'] for r in ours):.1f} MB")  # fmt: skip
        elif row["what"] == "chat":
            render = med(r[i]["render_ms"] for r in ours)
            first = med(r[i]["first_ms"] for r in ours)
            print(f"64 messages: render {render:.3f} ms, with encode {ms:.3f} ms "
                  f"(first time {first:.3f} ms); {row['bytes']} bytes, {row['ids']} ids")  # fmt: skip
        else:
            one, many = (med(p[row["file"]][k] for p in peers) for k in (0, 1))
            peer = min(one, many)
            first = med(r[i]["first_ms"] for r in ours)
            same = (row["ids"], row["hash"]) == peers[0][row["file"]][2:]
            print(f"{os.path.basename(row['file'])}: {row['bytes'] / 1e6:.2f} MB, {row['ids']} ids "
                  f"({'equal' if same else 'NOT EQUAL'}); {ms:.2f} ms ({row['bytes'] / ms / 1e3:.1f} "
                  f"MB/s, first time {first:.2f} ms), tokenizers encode {one:.1f} ms, batch "
                  f"{many:.1f} ms: {peer / ms:.1f} times ({peer / first:.1f} first)")  # fmt: skip
            if not same:
                sys.exit(1)


main()
