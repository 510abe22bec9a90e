#!/usr/bin/env python3
"""Train the demo model from generated conversations on one GPU.

    train_demo.py models/demo --minutes 8        needs tokenizer.json and chat_template.jinja there
    train_demo.py /tmp/x --from models/demo --minutes 0.5 --count 2000 --rows 4    a trial on the CPU

Conversations are packed into rows; a token sees only its own conversation, with positions from
zero.  The loss counts what the model writes, nothing else.  Weights are trained in float32 with
BF16 products and saved as BF16.  The learning rate follows the clock, so any budget ends cooled.
"""
import argparse
import math
import multiprocessing
import os
import pathlib
import shutil
import time

import numpy as np
import torch
import torch.nn.functional as F

import demo_data
import demo_model

ROW = 576          # tokens in a row; the longest story fits
WINDOW = demo_model.SHAPE["sliding_window"]
PART = 2500        # conversations a work item


def encode_part(job):
    """One work item: lengths of prompts and answers, and all their ids in one array."""
    seed, folder = job
    text = demo_model.Text(folder)
    ids, lengths = [], []
    for c in demo_data.conversations(f"train {seed}", PART):
        prompt, answer = (text.encode(t) for t in text.example(c))
        if len(prompt) + len(answer) > ROW:
            continue
        ids += prompt + answer
        lengths.append((len(prompt), len(answer)))
    return np.array(ids, np.uint16), np.array(lengths, np.int32)


def pack(parts, pad):
    """Rows of ids, positions, conversation numbers (0 is padding) and targets to count."""
    docs = [(ids, p, a) for part, lengths in parts
            for ids, (p, a) in zip(np.split(part, np.cumsum(lengths.sum(1))[:-1]), lengths)]
    np.random.default_rng(0).shuffle(docs)
    open_rows, rows = [], []
    for doc in docs:                   # first fit into a few open rows
        for row in open_rows:
            if row[0] + len(doc[0]) <= ROW:
                break
        else:
            row = [0, []]
            open_rows.append(row)
            if len(open_rows) > 32:
                rows.append(open_rows.pop(0)[1])
        row[0] += len(doc[0])
        row[1].append(doc)
    rows += [r[1] for r in open_rows]
    ids = np.full((len(rows), ROW), pad, np.int16)
    pos, doc_no, counted = (np.zeros((len(rows), ROW), t) for t in (np.int16, np.int8, bool))
    for i, row in enumerate(rows):
        at = 0
        for number, (doc, p, a) in enumerate(row, 1):
            end = at + p + a
            ids[i, at:end] = doc
            pos[i, at:end] = np.arange(p + a)
            doc_no[i, at:end] = number
            counted[i, at + p - 1:end - 1] = True  # positions that predict an answer token
            at = end
    return [torch.from_numpy(x) for x in (ids, pos, doc_no, counted)]


def masks(doc_no):
    """Attention masks of both layer kinds: causal, within a conversation, within the window."""
    at = torch.arange(ROW, device=doc_no.device)
    distance = at[:, None] - at[None]
    full = (doc_no[:, :, None] == doc_no[:, None, :]) & (distance >= 0)
    return {"full_attention": full[:, None], "sliding_attention": (full & (distance < WINDOW))[:, None]}


def make_loss(model, device):
    def loss(ids, pos, doc_no, where, weight):
        """Mean cross entropy at the positions `where` (flat), weight 0 for the unused ones."""
        with torch.autocast(device, torch.bfloat16):
            x = model.model(input_ids=ids, position_ids=pos, attention_mask=masks(doc_no), use_cache=False).last_hidden_state
            x = x.flatten(0, 1)[where]
            logits = model.lm_head(x).float()
        logits = 30 * torch.tanh(logits / 30)
        target = ids.flatten()[(where + 1).clamp(max=ids.numel() - 1)]
        return (F.cross_entropy(logits, target, reduction="none") * weight).sum() / weight.sum()
    return loss


def optimizer(model, lr, device):
    matrices = [p for n, p in model.named_parameters() if p.dim() == 2 and "embed" not in n]
    others = [p for n, p in model.named_parameters() if p.dim() != 2 or "embed" in n]
    groups = [dict(params=matrices, weight_decay=0.1), dict(params=others, weight_decay=0.0)]
    return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.97), eps=1e-9, fused=device == "cuda")


def train(model, data, args, device, start, keep):
    """Steps until the budget is used, with keep() called now and then; returns steps and losses."""
    data = [x.to(device) for x in data]
    n_rows = len(data[0])
    n_where = int(data[3].float().mean() * args.rows * ROW * 1.3)
    loss_of = make_loss(model, device)
    if args.compile:
        loss_of = torch.compile(loss_of, dynamic=False)
    opt = optimizer(model, args.lr, device)
    order, step, log, budget = torch.randperm(n_rows), 0, [], args.minutes * 60
    ready = time.time() - start        # the rate starts to fall when compilation is over
    total = torch.zeros((), device=device)
    while (used := time.time() - start) < budget:
        done = (used - ready) / max(budget - ready, 1e-9)
        rate = args.lr * min(1, (step + 1) / args.warmup) * max(0.01, 0.5 * (1 + math.cos(math.pi * done)))
        for g in opt.param_groups:
            g["lr"] = rate
        at = step * args.rows % (n_rows - args.rows + 1)
        if at < args.rows:
            order = torch.randperm(n_rows).to(device)
        pick = order[at:at + args.rows]
        ids, pos, doc_no, counted = (x[pick] for x in data)
        # A fixed number of positions keeps shapes static and the host ahead of the device.
        where = torch.argsort(counted.flatten(), descending=True, stable=True)[:n_where]
        loss = loss_of(ids.long(), pos.long(), doc_no, where, counted.flatten()[where].float())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        total += loss.detach()
        step += 1
        if step == 1:
            loss.item()
            ready = time.time() - start
        if step % args.report == 0:
            mean, now = total.item() / args.report, time.time() - start
            speed = (step - 1) * args.rows * ROW / (now - ready) / 1e6
            print(f"step {step:6d}  {now:6.1f} s  loss {mean:.4f}  lr {rate:.2e}  {speed:.2f} Mtok/s  "
                  f"epoch {step * args.rows / n_rows:.2f}", flush=True)
            log.append((step, mean))
            total.zero_()
            if step % (20 * args.report) == 0:
                keep()
    return step, log


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--from", dest="source", type=pathlib.Path, help="folder of tokenizer and template, if not OUT")
    p.add_argument("--minutes", type=float, default=8.2, help="budget, data preparation included")
    p.add_argument("--count", type=int, default=600000, help="conversations to generate")
    p.add_argument("--rows", type=int, default=56, help=f"rows of {ROW} tokens in a batch")
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--warmup", type=int, default=200, help="steps")
    p.add_argument("--report", type=int, default=250, help="steps between lines of output")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--compile", action="store_true")
    args = p.parse_args()
    start, source = time.time(), args.source or args.out
    text = demo_model.Text(source)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    with multiprocessing.get_context("fork").Pool(os.cpu_count()) as pool:
        parts = pool.map(encode_part, [(i, str(source)) for i in range(-(-args.count // PART))], chunksize=1)
    lengths = np.concatenate([n for _, n in parts])
    print(f"{len(lengths)} conversations, {lengths.sum() / 1e6:.1f} M tokens, {lengths[:, 1].sum() / 1e6:.1f} M of them answers, "
          f"longest {lengths.sum(1).max()}, {time.time() - start:.0f} s", flush=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"  # not before the workers were forked
    data = pack(parts, text.id("<pad>"))
    print(f"{len(data[0])} rows, {float((data[2] == 0).float().mean()):.1%} padding, {time.time() - start:.0f} s", flush=True)
    config = demo_model.text_config(text)
    model = demo_model.make_model(config, "sdpa")
    demo_model.init(model, args.seed)
    model.to(device).train()
    print(f"{sum(p.numel() for p in model.parameters())} parameters", flush=True)

    def keep():
        demo_model.save(model, config, args.out, text)

    steps, log = train(model, data, args, device, start, keep)
    keep()
    if source != args.out:
        for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
            shutil.copy(source / name, args.out)
    print(f"{steps} steps, {steps * args.rows * ROW / 1e6:.0f} M tokens, {time.time() - start:.0f} s, last loss {log[-1][1] if log else '-'}")


if __name__ == "__main__":
    main()
