#!/usr/bin/env python3
"""Compare `carat tokenize` with the Rust `tokenizers` package on random text and ids.

usage: tools/check_tokenizer.py [-n STRINGS] [-s SEED] [-v VOCABS] [TOKENIZER.json ...]

Each tokenizer.json, and VOCABS made-up ones of random merges, is given STRINGS random
texts to encode and as many random id lists to decode, with and without special tokens.
Prints the first disagreement and exits 1.  Needs: pip install tokenizers.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer

CARAT = os.environ.get("CARAT", "build/release/carat")
SPACE = "\u2581"
WORDS = (
    "the of and to in hello world naïve Zürich Москва 東京 日本語 नमस्ते مرحبا 안녕하세요 "
    "<h1> </code> <table> <unused5> [multimodal] <start_of_turn> return int def x=1; "
    "don't I'll 3.14 2026-12-01 0xff http://a.b/c?d=e user@host.org 👩‍👩‍👧 🇫🇷 é "
    "<0x41> <0xE4> <|turn <turn|> <|turn|> > </ > < /"
).split(" ")


def random_char(r):
    k = r.random()
    if k < 0.5:
        return chr(r.randrange(32, 127))
    if k < 0.6:
        return r.choice(" \n\t\r\u00a0\u3000\u2581\u200b\x00\x7f")
    if k < 0.8:
        return chr(r.randrange(0xA0, 0x3000))
    c = r.randrange(0x3000, 0x110000) if k > 0.9 else r.randrange(0x3000, 0xA000)
    return "\ufffd" if 0xD800 <= c < 0xE000 else chr(c)


def random_part(r, specials, pieces):
    k = r.randrange(9)
    if k == 0:
        return r.choice(" \n\t-=a0#") * r.randrange(1, 80)
    if k == 1:
        return r.choice(specials) if specials else "<"
    if k == 2:
        return "".join(random_char(r) for _ in range(r.randrange(1, 20)))
    if k == 3:
        return str(r.randrange(10 ** r.randrange(1, 15)))
    if k == 4:
        return r.choice(pieces).replace(SPACE, " ")
    if k == 5:
        s = r.choice(specials) if specials else "<|x"
        return s[: r.randrange(1, len(s) + 1)]
    if k == 6:
        s = r.choice(WORDS)
        return r.choice([s.upper(), s.title(), s[::-1], s * r.randrange(1, 8)])
    return " ".join(r.choice(WORDS) for _ in range(r.randrange(1, 8)))


def random_text(r, specials, pieces):
    joiner = r.choice(["", "", " ", "\n", "  "])
    return joiner.join(random_part(r, specials, pieces) for _ in range(r.randrange(0, 12)))


def random_ids(r, n_vocab, bytes_of):
    out = []
    for _ in range(r.randrange(0, 20)):
        k = r.randrange(4)
        if k == 0:
            out += [bytes_of[b] for b in random_char(r).encode()]
        elif k == 1:
            out.append(bytes_of[r.randrange(256)])
        else:
            out.append(r.randrange(n_vocab))
    return out


def carat(path, lines, *args):
    text = "".join(json.dumps(x) + "\n" for x in lines)
    p = subprocess.run(
        [CARAT, "tokenize", "-m", path, "--jsonl", *args], input=text, capture_output=True, text=True
    )
    if p.returncode:
        sys.exit(f"{path}: {p.stderr}")
    return [json.loads(x) for x in p.stdout.split("\n") if x]


def compare(path, what, inputs, got, want):
    if len(got) != len(want):
        sys.exit(f"{path}: {what}: {len(got)} answers to {len(want)} lines")
    for i, g, w in zip(inputs, got, want):
        if g != w:
            sys.exit(f"{path}: {what} of {json.dumps(i)}\n  carat      {g!r}\n  tokenizers {w!r}")


def check(path, n, r):
    ref = Tokenizer.from_file(path)
    vocab = ref.get_vocab()
    specials = [t.content for t in ref.get_added_tokens_decoder().values()]
    bytes_of = [vocab["<0x%02X>" % b] for b in range(256)]
    pieces = list(vocab)
    texts = [random_text(r, specials, pieces) for _ in range(n)]
    want = [e.ids for e in ref.encode_batch(texts)]
    compare(path, "encoding", texts, carat(path, texts), want)
    lists = [random_ids(r, len(vocab), bytes_of) for _ in range(n)] + want
    for skip in (False, True):
        args = ["--decode"] + (["--skip-special"] if skip else [])
        text = ref.decode_batch(lists, skip_special_tokens=skip)
        compare(path, "decoding", lists, carat(path, lists, *args), text)
    print(f"{path}: {n} texts ({sum(map(len, want))} ids) and {len(lists)} id lists: all equal")


def made_up(r):
    """A vocabulary of random merges over a small alphabet, its ids shuffled."""
    alphabet = r.sample(SPACE + "abc<>|/\n\t1é本😀", r.randrange(3, 12))
    pieces, merges = list(alphabet), []
    for _ in range(r.randrange(1, 200)):
        a, b = r.choice(pieces[-40:]), r.choice(pieces)
        if len(a + b) > 12 or [a, b] in merges:
            continue
        merges.append([a, b])
        if a + b not in pieces:
            pieces.append(a + b)
    r.shuffle(merges)
    specials = r.sample(["<a>", "<ab>", "<|a|>", "<|a", "a<b", SPACE + "c", "é本", "<unk>"], 4)
    everything = set(pieces) | {"<0x%02X>" % b for b in range(256)} | set(specials)
    everything = sorted(everything)
    r.shuffle(everything)
    vocab = {p: i for i, p in enumerate(everything)}
    added = [
        dict(id=vocab[s], content=s, single_word=False, lstrip=False, rstrip=False,
             normalized=False, special=True)
        for s in sorted(specials, key=vocab.get)
    ]  # fmt: skip
    return {
        "version": "1.0",
        "added_tokens": added,
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": SPACE},
        "pre_tokenizer": {"type": "Split", "pattern": {"String": " "},
                          "behavior": "MergedWithPrevious", "invert": False},
        "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
            {"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": {"type": "BPE", "dropout": None, "unk_token": None,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
                  "vocab": vocab, "merges": merges},
    }  # fmt: skip


def main():
    a = argparse.ArgumentParser(description="compare carat tokenize with tokenizers")
    a.add_argument("-n", type=int, default=20000, help="texts for each tokenizer")
    a.add_argument("-s", type=int, default=1, help="seed")
    a.add_argument("-v", type=int, default=0, help="made-up vocabularies")
    a.add_argument("tokenizer", nargs="*")
    o = a.parse_args()
    for path in o.tokenizer:
        check(path, o.n, random.Random(o.s))
    for i in range(o.v):
        r = random.Random(o.s * 1000003 + i)
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, f"made-up-{o.s}-{i}.json")
            with open(path, "w", encoding="utf-8") as f:
                json.dump(made_up(r), f)
            check(path, o.n, r)


main()
