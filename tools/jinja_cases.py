#!/usr/bin/env python3
"""Keeps tests/data/jinja_cases.jsonl equal to what Jinja2 gives.

  jinja_cases.py check    compares every line with Jinja2 (needs jinja2 3.1)
  jinja_cases.py write    computes the results of every line anew

The first line holds the variables of all cases.  The others hold {template, text},
{template, error: true}, or {template, refused: true} for what Jinja2 accepts and carat
refuses when it compiles.  To add a case, add {"template": "..."} and write.  Settings
are those of transformers' apply_chat_template."""
import json
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

PATH = "tests/data/jinja_cases.jsonl"


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                          sort_keys=sort_keys)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    return env


ENV = environment()
def outcome(template, variables):
    try:
        compiled = ENV.from_string(template)
    except Exception:
        return {"error": True}
    try:
        return {"text": compiled.render(json.loads(json.dumps(variables)))}
    except Exception:
        return {"error": True}


def renewed(kept):
    variables = json.loads(kept[0])["vars"]
    yield {"vars": variables}
    for line in kept[1:]:
        case = json.loads(line)
        if case.get("refused"):
            yield case
        else:
            yield {"template": case["template"], **outcome(case["template"], variables)}


def main():
    with open(PATH, encoding="utf-8") as f:
        kept = f.read().splitlines()
    made = [json.dumps(line) for line in renewed(kept)]
    if sys.argv[1:] == ["write"]:
        with open(PATH, "w", encoding="utf-8") as f:
            f.write("\n".join(made) + "\n")
        print(len(made) - 1, "cases")
        return 0
    if sys.argv[1:] != ["check"]:
        print(__doc__)
        return 2
    wrong = [i + 1 for i, (a, b) in enumerate(zip(kept, made)) if a != b]
    if wrong:
        print(f"{PATH}: differs from Jinja2 {jinja2.__version__} in lines {wrong}")
        return 1
    print(f"{len(kept) - 1} cases equal Jinja2 {jinja2.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
