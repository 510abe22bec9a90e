#!/usr/bin/env python3
"""Ask the demo model its evaluation questions, greedily, in float32 with Hugging Face transformers.

    eval_demo.py models/demo --write           new questions, answers and ids into eval.jsonl
    eval_demo.py models/demo                   ask the questions of eval.jsonl again and compare ids
    eval_demo.py models/demo --fresh 2000      only count, over that many other held-out questions

A line of eval.jsonl: name, messages, tools, enable_thinking; answer (what is expected) and match
("exact": the text after the thought, trimmed; "tool_call": the calls as written); ids (greedy
answer with its stop token), text (the same decoded without special tokens), right.
"""
import argparse
import collections
import json
import pathlib
import time

import torch

import demo_data
import demo_model

LONGEST = 640
EACH = 4           # questions of every task in eval.jsonl, the rest as they come


def questions(seed, count, each=0):
    """Held-out conversations without repetition, at least `each` of every task seen."""
    seen, tasks, out, spare = set(), collections.Counter(), [], []
    for c in demo_data.conversations(seed, 40 * count, evaluation=True):
        if not each and len(spare) == count:
            break
        text = json.dumps([c["messages"][:-1], c["tools"], c["enable_thinking"]])
        if text in seen:
            continue
        seen.add(text)
        few = tasks[c["task"]] < each
        tasks[c["task"]] += few
        (out if few else spare).append(c)
    out += spare[:count - len(out)]
    return sorted(out[:count], key=lambda c: c["task"])


def line(text, conversation, number):
    last = conversation["messages"][-1]
    call = bool(last.get("tool_calls"))
    _, whole = text.example(conversation)
    body = whole.rpartition("<channel|>")[2]
    answer = body.removesuffix("<|tool_response>") if call else body.removesuffix("<turn|>")
    return {"name": f"{conversation['task'].replace(': ', '-').replace(' ', '-')}-{number:03}", "messages": conversation["messages"][:-1],
            "tools": conversation["tools"], "enable_thinking": conversation["enable_thinking"], "answer": answer,
            "match": "tool_call" if call else "exact"}


def judge(text, q, ids):
    """Whether the answer in ids is the expected one, and ends as it should."""
    stop = "<|tool_response>" if q["match"] == "tool_call" else "<turn|>"
    if not ids or ids[-1] != text.id(stop):
        return False
    written = text.tokenizer.decode(ids[:-1], skip_special_tokens=False)
    return written.rpartition("<channel|>")[2].strip() == q["answer"].strip()


@torch.no_grad()
def ask(model, text, lines, batch):
    """Greedy answers; prompts of a batch are padded on the left."""
    device, pad, stops = model.device, text.id("<pad>"), text.stops()
    prompts = [text.encode(text.render(q["messages"], q["tools"], q["enable_thinking"], True)) for q in lines]
    order = sorted(range(len(lines)), key=lambda i: ("long story" in lines[i]["name"].replace("-", " "), len(prompts[i])))
    answers = [None] * len(lines)
    for at in range(0, len(order), batch):
        group = order[at:at + batch]
        width = max(len(prompts[i]) for i in group)
        ids = torch.tensor([[pad] * (width - len(prompts[i])) + prompts[i] for i in group], device=device)
        out = model.generate(ids, attention_mask=(ids != pad).long(), max_new_tokens=LONGEST, do_sample=False, temperature=None,
                             top_k=None, top_p=None, eos_token_id=stops, pad_token_id=pad, use_cache=True)
        for i, row in zip(group, out[:, width:].tolist()):
            end = next((n + 1 for n, t in enumerate(row) if t in stops), len(row))
            answers[i] = row[:end]
    return answers


def report(text, lines, answers, show):
    right, total = collections.Counter(), collections.Counter()
    for q, ids in zip(lines, answers):
        task = q["name"].rpartition("-")[0]
        ok = judge(text, q, ids)
        total[task] += 1
        right[task] += ok
        if not ok and show > 0:
            show -= 1
            print(f"wrong {q['name']}: {q['messages'][-1].get('content')!r}\n   wanted {q['answer']!r}\n   "
                  f"got    {text.tokenizer.decode(ids, skip_special_tokens=False)!r}")
    print("; ".join(f"{t} {right[t]}/{n}" for t, n in sorted(total.items())))
    print(f"right: {sum(right.values())} of {sum(total.values())} = {sum(right.values()) / sum(total.values()):.1%}", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("model", type=pathlib.Path)
    p.add_argument("--write", action="store_true", help="draw the questions anew and write eval.jsonl")
    p.add_argument("--fresh", type=int, default=0, metavar="N", help="N other questions instead of eval.jsonl")
    p.add_argument("--count", type=int, default=300, help="questions in eval.jsonl")
    p.add_argument("--batch", type=int, default=1, help="more is faster; ids are recorded with 1")
    p.add_argument("--show", type=int, default=20, help="wrong answers to print")
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = p.parse_args()
    text, model, path = demo_model.Text(args.model), demo_model.load(args.model, args.device), args.model / "eval.jsonl"
    if args.write or args.fresh:
        drawn = questions("fresh", args.fresh) if args.fresh else questions("evaluation", args.count, EACH)
        lines = [line(text, c, i) for i, c in enumerate(drawn)]
    else:
        lines = [json.loads(row) for row in path.read_text(encoding="utf-8").splitlines()]
    began = time.time()
    answers = ask(model, text, lines, args.batch)
    report(text, lines, answers, args.show)
    print(f"{sum(map(len, answers))} tokens in {time.time() - began:.0f} s")
    if args.write:
        for q, ids in zip(lines, answers):
            q.update(ids=ids, text=text.tokenizer.decode(ids, skip_special_tokens=True), right=judge(text, q, ids))
        path.write_text("".join(json.dumps(q, ensure_ascii=False) + "\n" for q in lines), encoding="utf-8")
    elif not args.fresh:
        print(f"same ids: {sum(q['ids'] == a for q, a in zip(lines, answers))} of {len(lines)}")


if __name__ == "__main__":
    main()
