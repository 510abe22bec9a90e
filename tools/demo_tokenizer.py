#!/usr/bin/env python3
"""Train the demo model's tokenizer and write tokenizer.json and tokenizer_config.json.

    demo_tokenizer.py models/demo [--size 3072] [--count 60000]

The file has the form of Gemma 4's: BPE over code points by merge rank, byte fallback, spaces as
U+2581, no special token added by the post-processor.  Merges stay within a word with the space
before it, a run of punctuation, or a run of one kind of white space; digits stay alone.  The 24
special tokens keep their names and get other ids, spread over the table.
"""
import argparse
import collections
import json
import pathlib
import re

from tokenizers import Tokenizer

from demo_data import conversations

SPECIALS = """<pad> <eos> <bos> <unk> <mask> <|tool> <tool|> <|tool_call> <tool_call|> <|tool_response> <tool_response|>
<|"|> <|think|> <|channel> <channel|> <|turn> <turn|> <|image> <|audio> <|image|> <|audio|> <image|> <audio|> <|video|>""".split()
FIRST_SPECIAL, SPECIAL_STEP = 37, 101
SPACE = "\u2581"
CHARS = ([chr(c) for c in range(0x21, 0x7F)] + [SPACE, "\n", "\t"]
         + [chr(c) for c in range(0xC0, 0x100) if c not in (0xD7, 0xF7)] + list("°£§€’“”–…"))
CHUNK = re.compile(rf"{SPACE}?[^\W\d_]+|{SPACE}?(?:[^\w\s{SPACE}]|_)+")
LONGEST_RUN = {"\n": 8, SPACE: 8, "\t": 4}
LONGEST_PIECE = 16
RAREST = 20                            # rarer words are left to smaller pieces
NAMES = dict(bos_token="<bos>", eos_token="<eos>", pad_token="<pad>", unk_token="<unk>", mask_token="<mask>",
             sot_token="<|turn>", eot_token="<turn|>", soc_token="<|channel>", eoc_token="<channel|>", std_token="<|tool>",
             etd_token="<tool|>", stc_token="<|tool_call>", etc_token="<tool_call|>", str_token="<|tool_response>",
             etr_token="<tool_response|>", escape_token='<|"|>', think_token="<|think|>", image_token="<|image|>",
             audio_token="<|audio|>", boi_token="<|image>", eoi_token="<image|>", boa_token="<|audio>", eoa_token="<audio|>")


def strings(value):
    """All strings in a conversation, keys of schemas and arguments included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for k, v in value.items():
            yield k
            yield from strings(v)
    elif isinstance(value, list):
        for v in value:
            yield from strings(v)


def count_chunks(count):
    chunks = collections.Counter()
    for c in conversations("tokenizer", count):
        for text in strings([c["messages"], c["tools"]]):
            chunks.update(CHUNK.findall(text.replace(" ", SPACE)))
    chunks.update(dict.fromkeys(["user", "model", "system", "thought", "STRING", "OBJECT"], count))
    return chunks


def run_merges():
    """Runs of white space, longest first, so that a run is never split by a word that follows."""
    out = []
    for n in range(max(LONGEST_RUN.values()), 1, -1):
        for left in range(n - 1, 0, -1):
            out += [(c * left, c * (n - left)) for c, top in LONGEST_RUN.items() if n <= top]
    return out


def learn_merges(chunks, room):
    """Plain BPE: join the most frequent pair until the room is used; ties go to the smaller pair."""
    words = [(list(w), n) for w, n in sorted(chunks.items()) if n >= RAREST and all(c in CHARS for c in w)]
    merges, pieces = [], set()
    while len(pieces) < room:
        pairs = collections.Counter()
        for w, n in words:
            for pair in zip(w, w[1:]):
                pairs[pair] += n
        pairs = {p: n for p, n in pairs.items() if len(p[0] + p[1]) <= LONGEST_PIECE}
        if not pairs:
            break
        a, b = min(pairs, key=lambda p: (-pairs[p], p))
        merges.append((a, b))
        pieces.add(a + b)
        for w, _ in words:
            i = 0
            while i < len(w) - 1:
                if w[i] == a and w[i + 1] == b:
                    w[i:i + 2] = [a + b]
                i += 1
    return merges


def build(size, chunks):
    runs = run_merges()
    base = [f"<0x{b:02X}>" for b in range(256)] + CHARS + sorted({a + b for a, b in runs})
    learned = learn_merges(chunks, size - len(SPECIALS) - len(base))
    plain = base + list(dict.fromkeys(a + b for a, b in learned))
    ids = {FIRST_SPECIAL + SPECIAL_STEP * i: s for i, s in enumerate(SPECIALS)}
    vocab, rest = {}, iter(plain)
    for i in range(len(plain) + len(SPECIALS)):
        vocab[ids.get(i) or next(rest)] = i
    flags = dict(single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
    sequence = [{"Sequence": {"id": "A", "type_id": 0}}]
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [dict(id=vocab[s], content=s, **flags) for s in SPECIALS],
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": SPACE},
        "pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
        "post_processor": {"type": "TemplateProcessing", "single": sequence,
                           "pair": sequence + [{"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": {}},
        "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
                                                     {"type": "ByteFallback"}, {"type": "Fuse"}]},
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
                  "vocab": vocab, "merges": [list(m) for m in runs + learned]},
    }


def check(tok, data):
    """Round trips, lone digits, and every special token as one id."""
    texts = [t for c in conversations("check", 500) for t in strings(c["messages"])]
    for t in texts + ["", "a  b   c\n\n\n d\t\te 12345 <0x41> {\"k\": [1]} 日本 😀 \r\n\x00 é ∑", "\n" * 19 + " " * 21 + "x"]:
        assert tok.decode(tok.encode(t).ids, skip_special_tokens=False) == t, t
    assert len(tok.encode("12345").ids) == 5
    for s in data["added_tokens"]:
        assert tok.encode("x" + s["content"] + " y").ids[1] == s["id"]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--size", type=int, default=3072, help="pieces at most")
    p.add_argument("--count", type=int, default=60000, help="conversations to learn from")
    args = p.parse_args()
    data = build(args.size, count_chunks(args.count))
    tok = Tokenizer.from_str(json.dumps(data))
    check(tok, data)
    args.out.mkdir(parents=True, exist_ok=True)
    tok.save(str(args.out / "tokenizer.json"), pretty=True)
    config = dict(sorted(dict(NAMES, backend="tokenizers", extra_special_tokens=["<|video|>"], padding_side="left",
                              model_max_length=4096, tokenizer_class="GemmaTokenizer").items()))
    (args.out / "tokenizer_config.json").write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n")
    print(len(data["model"]["vocab"]), "pieces,", len(data["model"]["merges"]), "merges")


if __name__ == "__main__":
    main()
