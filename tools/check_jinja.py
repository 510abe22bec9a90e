#!/usr/bin/env python3
"""Random templates and values: carat render against Jinja2 (needs jinja2 3.1).

Usage: tools/check_jinja.py [CASES [SEED [CARAT]]]    exits with 1 on a difference
A difference is printed with its template; what carat refuses as unsupported is counted."""
import collections
import json
import random
import re
import subprocess
import sys
import tempfile

from jinja_cases import ENV

NAMES = ["s", "n", "f", "l", "m", "z", "t", "u", "x", "y", "nope"]
STRINGS = ["", "a", "Ab", " b ", "\u00e9\u00df", "\u03a3a\u03a3", "x,y", "<|t|>", "it's", "\n"]
FILTERS = ["upper", "lower", "trim", "length", "list", "string", "first", "last", "dictsort", "tojson",
           "default('d')", "default('d', true)", "join(',')", "map('upper')|list", "items|list",
           "replace('a', 'b')", "count", "map(attribute='a')|list"]
TESTS = ["string", "boolean", "mapping", "sequence", "none", "defined", "undefined", "number", "integer",
         "float", "iterable", "true", "false", "in [1, 'a']", "eq 1", "ne ''"]
METHODS = ["get('a')", "get('q', 1)", "split(',')", "split()", "strip()", "items()", "keys()", "values()",
           "upper()", "lower()", "startswith('a')", "endswith('b')", "replace('a', 'zz')", "lstrip()",
           "rstrip('b')", "split('a', 1)"]
SIGNS = ["", "", "-"]
INPUTS = 8  # requests a template


class Maker:
    def __init__(self, rng):
        self.r = rng
        self.macros = []

    def literal(self):
        r = self.r
        return r.choice([
            lambda: repr(r.choice(STRINGS[:7])), lambda: str(r.randint(-3, 12)),
            lambda: str(r.choice([0.5, 1.0, 2.25, 1e20, 1e-7])),
            lambda: r.choice(["true", "false", "none"]), lambda: "[]", lambda: "{}",
            lambda: "'a' 'b'"])()

    def arithmetic(self, e):
        r = self.r
        return r.choice([f"{e()} + {e()}", f"{e()} - {e()}", f"{e()} * {r.randint(-1, 3)}", f"{e()} % 3",
                         f"{e()} // 2", f"{e()} / 4", f"-{e()}"])

    def expr(self, d):
        r = self.r
        if d <= 0:
            return r.choice(NAMES) if r.random() < 0.65 else self.literal()
        e = lambda: self.expr(d - 1)
        return r.choice([
            lambda: self.arithmetic(e), lambda: f"{e()} ~ {e()}", lambda: f"{e()} ~ {e()}", lambda: f"({e()})",
            lambda: f"s + {e()}|string", lambda: f"n {r.choice('+-*')} {r.choice(['f', 'n', 't', '3'])}",
            lambda: f"{e()} {r.choice(['==', '!=', '==', '!=', '==', '<', '>='])} {e()}",
            lambda: f"{e()} {r.choice(['in', 'not in'])} {e()}",
            lambda: f"{e()} and {e()}", lambda: f"{e()} or {e()}", lambda: f"not {e()}",
            lambda: f"{e()} if {e()} else {e()}", lambda: f"({e()} if {e()})",
            lambda: f"{e()}|{r.choice(FILTERS)}", lambda: f"{e()}|{r.choice(FILTERS)}",
            lambda: f"{e()}|{r.choice(FILTERS)}|{r.choice(FILTERS)}",
            lambda: f"{e()} is {r.choice(['', 'not '])}{r.choice(TESTS)}",
            lambda: f"{r.choice(NAMES)}[{e()}]", lambda: f"{r.choice(NAMES)}['a']",
            lambda: f"{r.choice(NAMES)}.{r.choice(['a', 'b', 'items', 'count', 'real'])}",
            lambda: f"{r.choice(NAMES)}[{r.choice(['1:', ':-1', '::2', '::-1', '-2:', '1:9:3', ':'])}]",
            lambda: f"({e()}).{r.choice(METHODS)}", lambda: f"{r.choice(NAMES)}.{r.choice(METHODS)}",
            lambda: f"[{e()}, {e()}]", lambda: f"({e()}, {e()})", lambda: f"{{'a': {e()}, 'b': {e()}}}",
            lambda: f"range({r.randint(-2, 4)})|list", lambda: f"m{self.r.randint(0, 1)}({e()}, b={e()})",
            lambda: f"m{self.r.randint(0, 1)}({e()})"])()

    def tag(self, text):
        r = self.r
        return "{%" + r.choice(SIGNS) + f" {text} " + r.choice(SIGNS) + "%}"

    def out(self, text):
        r = self.r
        return "{{" + r.choice(SIGNS) + f" {text} " + r.choice(SIGNS) + "}}"

    def body(self, d, loop=False):
        return "".join(self.statement(d, loop) for _ in range(self.r.randint(1, 3)))

    def statement(self, d, loop=False):
        r = self.r
        choices = [lambda: self.out(self.expr(r.randint(0, 3))), lambda: self.out(self.expr(2)),
                   lambda: r.choice(["text", "\n", "  ", " a\n", "\n  ", "{# c #}", "{#- c -#}\n"]),
                   lambda: self.tag(f"set {r.choice('xysn')} = {self.expr(2)}"),
                   lambda: self.tag(f"set ns.v = {self.expr(1)}"), lambda: self.out("ns.v"),
                   lambda: self.tag(f"set x, y = {self.expr(2)}")]
        if loop:
            choices += [lambda: self.out("loop." + r.choice(["index", "index0", "first", "last"])),
                        lambda: self.tag("if loop.last") + self.tag(r.choice(["break", "continue"])) + self.tag("endif")]
        if d > 0:
            choices += [
                lambda: self.tag("if " + self.expr(2)) + self.body(d - 1, loop) + self.tag("endif"),
                lambda: self.tag("if " + self.expr(1)) + self.body(d - 1, loop) + self.tag("elif " + self.expr(1)) +
                self.body(d - 1, loop) + self.tag("else") + self.body(d - 1, loop) + self.tag("endif"),
                lambda: self.tag(f"for {r.choice('xys')} in {self.expr(1)}") + self.body(d - 1, True) +
                r.choice(["", self.tag("else") + self.body(d - 1, loop)]) + self.tag("endfor"),
                lambda: self.tag(f"for x in {r.choice(NAMES)} if {self.expr(1)}") + self.body(d - 1, True) + self.tag("endfor"),
                lambda: self.tag("for x, y in m|dictsort") + self.body(d - 1, True) + self.tag("endfor"),
                lambda: self.tag(f"set {r.choice(['x', 'y', 'ns.v'])}") + self.body(d - 1) + self.tag("endset")]
        return r.choice(choices)()

    def template(self):
        r = self.r
        parts = ["{%- set ns = namespace(v=0) -%}"]
        parts += ["{%- set " + k + " = messages[0]." + k + " -%}" for k in "snflmztu" if r.random() < 0.97]
        macros = [f"{{%- macro m{i}(a, b=1, x=none) -%}}" + self.out(r.choice(["a", "b", "x", "s"])) +
                  self.body(1).replace("m0(", "m1(" if i == 0 else "(") .replace("m1(", "(" if i else "m1(") +
                  "{%- endmacro -%}" for i in range(2)]
        parts[r.randint(1, len(parts)):0] = macros
        return "".join(parts) + self.statement(2) + self.statement(1)


def value(r, d=2):
    if d == 0 or r.random() < 0.6:
        return r.choice([None, True, False, 0, 1, -5, 2**63, 10**25, 1.0, -0.5, 1e16, 1e-5] + STRINGS)
    if r.random() < 0.5:
        return [value(r, d - 1) for _ in range(r.randint(0, 3))]
    return {r.choice(["a", "B", "b", "A", "items", "\u00e9"]): value(r, d - 1) for _ in range(r.randint(0, 3))}


def inputs(r):
    return {"role": "r", "s": r.choice(STRINGS), "n": r.randint(-3, 9), "f": r.choice([0.5, 1.0, -2.5, 1e22]),
            "l": [value(r) for _ in range(r.randint(0, 4))], "z": value(r), "t": r.random() < 0.5, "u": value(r),
            "m": {k: value(r) for k in r.sample(["a", "b", "B", "_", "Zz", "items"], r.randint(0, 4))}}


def oracle(template, messages):
    try:
        return "text", ENV.from_string(template).render(bos_token="<bos>", messages=messages,
                                                        add_generation_prompt=False)
    except Exception as e:
        return "error", f"{type(e).__name__}: {e}"


def carat(binary, path, requests):
    lines = "".join(json.dumps({"messages": [m]}) + "\n" for m in requests)
    p = subprocess.run([binary, "render", "--jsonl", "--template", path], capture_output=True,
                       input=lines.encode(), timeout=60)
    if p.returncode:
        return [("error" if p.returncode == 1 else "crash", p.stderr.decode())] * len(requests)
    answers = [json.loads(line) for line in p.stdout.splitlines()]
    return [("text", a) if isinstance(a, str) else ("error", a["error"]) for a in answers]


def verdict(want, got):
    """Equal, an accepted difference, or None."""
    if got[0] == "error" and want[0] == "text" and re.search("support|must be followed", got[1]):
        return "refused: " + re.sub(r".*jinja:\d+: ", "", got[1]).strip()[:60]
    if " at 0x" in want[1]:
        return "prints an address"
    return "equal " + want[0] if want[0] == got[0] and (want[0] == "error" or want == got) else None


def main():
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    binary = sys.argv[3] if len(sys.argv) > 3 else "build/release/carat"
    count, bad = collections.Counter(), 0
    with tempfile.NamedTemporaryFile("w", suffix=".jinja", encoding="utf-8", newline="") as f:
        for case in range(cases):
            r = random.Random(seed * 1000003 + case)
            template, requests = Maker(r).template(), [inputs(r) for _ in range(INPUTS)]
            f.seek(0)
            f.truncate()
            f.write(template)
            f.flush()
            for request, got in zip(requests, carat(binary, f.name, requests)):
                want = oracle(template, [request])
                same = verdict(want, got)
                count[same or "different"] += 1
                if not same:
                    bad += 1
                    print(f"case {case} of seed {seed}:\n{template}\n{json.dumps(request)}\n"
                          f"  want {want}\n  got  {got}\n")
                    break
    for k, v in count.most_common():
        print(v, k)
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
