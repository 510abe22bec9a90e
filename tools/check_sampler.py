#!/usr/bin/env python3
"""Compare the sampler with the logits processors of Hugging Face transformers.

usage: tools/check_sampler.py [-n CASES] [-s SEED] [-v VOCABULARY]

Random rows and parameters go through RepetitionPenalty, Temperature, TopK, TopP, MinP and
Typical in the order of generate(), and through ct_sampler_pick; the id that is drawn must
be the one at the same random number of transformers' distribution.  Prints the first
disagreement and exits 1.  Needs: pip install torch transformers; a C compiler.
"""
import argparse
import ctypes as c
import os
import random
import subprocess
import sys
import tempfile

import torch
from transformers.generation import logits_process as hf


class Sampling(c.Structure):
    """ct_sampling of src/engine/sampling.h."""

    _fields_ = [
        ("temperature", c.c_double),
        ("top_k", c.c_uint32),
        ("top_p", c.c_double),
        ("min_p", c.c_double),
        ("typical_p", c.c_double),
        ("repetition_penalty", c.c_double),
        ("presence_penalty", c.c_double),
        ("frequency_penalty", c.c_double),
        ("dry_multiplier", c.c_double),
        ("dry_base", c.c_double),
        ("dry_allowed_length", c.c_uint32),
        ("dry_last_n", c.c_uint32),
        ("dry_breakers", c.c_void_p),
        ("logit_bias", c.c_void_p),
        ("n_logit_bias", c.c_size_t),
        ("suppress_ids", c.c_void_p),
        ("n_suppress_ids", c.c_size_t),
        ("eos_ids", c.c_void_p),
        ("n_eos_ids", c.c_size_t),
        ("stop_ids", c.c_void_p),
        ("n_stop_ids", c.c_size_t),
        ("ignore_eos", c.c_bool),
        ("min_tokens", c.c_uint32),
        ("seed", c.c_uint64),
        ("logprobs", c.c_bool),
        ("top_logprobs", c.c_uint32),
    ]


class Logprob(c.Structure):
    _fields_ = [("id", c.c_uint32), ("logprob", c.c_float)]


class Logprobs(c.Structure):
    _fields_ = [
        ("logprob", c.c_float),
        ("rank", c.c_uint32),
        ("n_top", c.c_uint32),
        ("top", Logprob * 20),
    ]


class Sample(c.Structure):
    _fields_ = [("id", c.c_uint32), ("stop", c.c_bool), ("logprobs", Logprobs)]


def build(folder):
    """The sampler as a shared library."""
    names = "sampler sampling sample_state penalties dry rank truncate exp_sum logprobs rng".split()
    sources = [f"src/engine/{n}.c" for n in names] + ["src/base/status.c"]
    path = os.path.join(folder, "sampler.so")
    flags = ["-std=c17", "-O2", "-D_GNU_SOURCE", "-Isrc", "-ffp-contract=off", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, "-o", path, *sources, "-lm"], check=True)
    lib = c.CDLL(path)
    lib.ct_sampling_neutral.restype = Sampling
    lib.ct_sampler_uniform.restype = c.c_double
    lib.ct_sampler_uniform.argtypes = [c.c_uint64, c.c_uint64]
    lib.ct_sample_state_prompt.argtypes = [c.c_void_p, c.c_void_p, c.c_size_t]
    return lib


def draw(lib, sampler, row, ids, p):
    """What the sampler picks, with logprobs."""
    state, out, err = c.c_void_p(), Sample(), c.create_string_buffer(1 << 14)
    n = len(row)
    assert lib.ct_sample_state_create(c.byref(state), c.byref(p), n, 4096, err) == 0, err.raw[4:99]
    lib.ct_sample_state_prompt(state, (c.c_uint32 * len(ids))(*ids), len(ids))
    logits = (c.c_float * n)(*row)
    assert lib.ct_sampler_pick(sampler, logits, state, None, c.byref(out), err) == 0, err.raw[4:99]
    lib.ct_sample_state_destroy(state)
    return out


def distribution(row, ids, p):
    """transformers' probabilities: the processors that generate() makes, in its order."""
    chain = []
    if p.repetition_penalty != 1:
        chain.append(hf.RepetitionPenaltyLogitsProcessor(p.repetition_penalty))
    chain.append(hf.TemperatureLogitsWarper(p.temperature))
    if p.top_k:
        chain.append(hf.TopKLogitsWarper(p.top_k))
    if p.top_p < 1:
        chain.append(hf.TopPLogitsWarper(p.top_p))
    if p.min_p > 0:
        chain.append(hf.MinPLogitsWarper(p.min_p))
    if p.typical_p < 1:
        chain.append(hf.TypicalLogitsWarper(p.typical_p))
    scores = torch.tensor([row], dtype=torch.float64)
    input_ids = torch.tensor([ids])
    for step in chain:
        scores = step(input_ids, scores)
    return torch.softmax(scores[0], dim=-1)


def check(lib, sampler, r, n):
    spread = r.choice([0.3, 3.0, 8.0])
    row = torch.tensor([r.gauss(0, spread) for _ in range(n)], dtype=torch.float32).tolist()
    ids = [r.randrange(n) for _ in range(r.randrange(1, 50))]
    p = lib.ct_sampling_neutral()
    p.temperature = r.choice([0.3, 0.7, 1.0, 1.0, 1.5])
    p.top_k = r.choice([0, 0, r.randrange(1, n), 64])
    p.top_p = r.choice([1.0, r.uniform(0.05, 0.99), 0.95])
    p.min_p = r.choice([0.0, 0.0, r.uniform(0.001, 0.5)])
    p.typical_p = r.choice([1.0, 1.0, r.uniform(0.05, 0.95)])
    p.repetition_penalty = r.choice([1.0, 1.0, r.uniform(0.5, 2)])
    p.logprobs, p.top_logprobs = True, 20
    probs = distribution(row, ids, p)
    scores, order = torch.tensor(row).sort(descending=True)
    raw = torch.log_softmax(torch.tensor(row, dtype=torch.float64), dim=-1)
    # The sampler ranks by the penalised logit; so does the probability.
    kept, ranked = probs.sort(descending=True)
    edges = kept.cumsum(0)
    for _ in range(20):
        p.seed = r.getrandbits(64)
        got = draw(lib, sampler, row, ids, p)
        u = lib.ct_sampler_uniform(p.seed, len(ids))
        at = min(int(torch.searchsorted(edges, u, right=True)), n - 1)
        if min(abs(float(edges[at]) - u), abs(float(edges[at - 1]) - u) if at else 1) < 1e-6:
            continue
        what = {k: getattr(p, k) for k, _ in Sampling._fields_}
        if got.id != int(ranked[at]):
            sys.exit(f"id {got.id}, transformers {int(ranked[at])} at {u}: {what}")
        lp = got.logprobs
        if abs(lp.logprob - float(raw[got.id])) > 1e-5 or int(order[lp.rank - 1]) != got.id:
            sys.exit(f"logprob {lp.logprob} rank {lp.rank}, torch {float(raw[got.id])}: {what}")
        top = [lp.top[i].id for i in range(lp.n_top)]
        if top != order[:20].tolist():
            sys.exit(f"top {top}, torch {order[:20].tolist()}")


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("-n", type=int, default=500, help="cases of each vocabulary")
    a.add_argument("-s", type=int, default=1, help="seed")
    a.add_argument("-v", type=int, nargs="*", default=[70, 3000], help="sizes of vocabulary")
    a = a.parse_args()
    r = random.Random(a.s)
    with tempfile.TemporaryDirectory() as folder:
        lib = build(folder)
        for n in a.v:
            sampler, err = c.c_void_p(), c.create_string_buffer(1 << 14)
            assert lib.ct_sampler_create(c.byref(sampler), n, err) == 0
            for _ in range(a.n):
                check(lib, sampler, r, n)
            lib.ct_sampler_destroy(sampler)
            print(f"vocabulary {n}: {a.n} cases agree")


if __name__ == "__main__":
    main()
