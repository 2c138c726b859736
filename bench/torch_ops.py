#!/usr/bin/env python3
"""PyTorch's side of the comparisons of single operations in bench/compare.py.

usage: bench/torch_ops.py {attention,linear_cross_entropy,adamw} [--rows N] [--threads N] [--repeats N]

Prints one JSON line: torch (version), how (the PyTorch functions that ran), seconds (median of the repeats
after one to warm up) and peak_bytes: the peak of resident memory above what stood there once the inputs were
made. Gradients of the inputs are made anew in each repeat, so they count.
"""
import argparse
import json
import math
import resource
import statistics
import time

import torch
import torch.nn.functional as F


def random_bf16(*shape):
    return torch.empty(shape, dtype=torch.bfloat16).normal_()


def attention(tokens=4096, heads=12, head_dim=64):
    """Causal attention of one sequence, forward and backward, by the fused function if PyTorch has one."""
    q, k, v = (random_bf16(1, heads, tokens, head_dim).requires_grad_() for _ in range(3))
    dy = random_bf16(1, heads, tokens, head_dim)
    future = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    fused = getattr(F, "scaled_dot_product_attention", None)

    def run():
        if fused:
            y = fused(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) / math.sqrt(head_dim)
            y = torch.softmax(scores.masked_fill(future, -math.inf), -1) @ v
        y.backward(dy)
        q.grad = k.grad = v.grad = None

    return run, "scaled_dot_product_attention" if fused else "matmul, softmax, matmul"


def linear_cross_entropy(rows=1024, width=768, vocab=50304):
    """Logits and their loss, forward and backward: bf16 product, f32 softmax, as under bf16 autocast."""
    x = random_bf16(rows, width).requires_grad_()
    w = random_bf16(vocab, width).mul_(0.02).requires_grad_()
    labels = torch.randint(vocab, (rows,))

    def run():
        F.cross_entropy(F.linear(x, w).float(), labels).backward()
        x.grad = w.grad = None

    return run, "linear, float, cross_entropy"


def gpt2_shapes(layers=12, width=768, vocab=50304, context=1024):
    """Shapes of GPT-2's parameters, the output map tied to the embedding."""
    layer = [(width,)] * 4 + [(3 * width, width), (3 * width,), (width, width), (width,)]
    layer += [(4 * width, width), (4 * width,), (width, 4 * width), (width,)]
    return [(vocab, width), (context, width)] + layer * layers + [(width,)] * 2


def adamw(shapes=None):
    """One step of AdamW over GPT-2's parameters in f32."""
    parameters = [torch.zeros(shape, requires_grad=True) for shape in shapes or gpt2_shapes()]
    for parameter in parameters:
        parameter.grad = torch.full_like(parameter, 1e-3)
    rule = torch.optim.AdamW(parameters, lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, foreach=True)
    return rule.step, "AdamW(foreach=True)"


def resident_bytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def time_of(run, repeats):
    """Seconds of each repeat after the first call, and the peak of memory above what stood there before."""
    before = resident_bytes()
    run()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before


def main():
    operations = {each.__name__: each for each in (attention, linear_cross_entropy, adamw)}
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operation", choices=operations)
    parser.add_argument("--rows", type=int, help="rows of linear_cross_entropy (1024), tokens of attention (4096)")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(chosen.threads)
    run, how = operations[chosen.operation](*([chosen.rows] if chosen.rows else []))
    seconds, peak = time_of(run, chosen.repeats)
    print(json.dumps({"torch": torch.__version__, "how": how, "seconds": statistics.median(seconds),
                      "peak_bytes": peak}))


if __name__ == "__main__":
    main()
