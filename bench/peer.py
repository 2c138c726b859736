#!/usr/bin/env python3
"""Speed and memory of Ingot's training step against a peer's, measured in turns on the same machine.

usage: bench/peer.py [--rounds 3] [--dtypes bf16 fp32] [--at-least RATIO ...] [--at-most-memory RATIO] [-- COMMAND...]

COMMAND is Ingot's side; by default build/release/ingot bench step over recipes/gpt2-124m.toml. Any of {dtype} (bf16 or f32) {layers}
{width} {heads} {vocab} {batch} {seq} {steps} in it is replaced. It prints, as its last line on stdout, one JSON object with
tokens_per_second and peak_mb (peak resident memory).

The peer is torch_train.py in the folder $INGOT_PEERS (or --peers FOLDER; default ../shared/peers beside the tree), run by
--python (default /usr/bin/python3, with Debian's python3-torch). The two run one after the other in each round, never
together; medians of the rounds are compared. Other work on the machine disturbs both sides, but not equally: read the spread.
Exits 1 where a ratio that was asked for is missed, 2 where a side does not run.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
OURS = [str(ROOT / "build/release/ingot"), "bench", "step", str(ROOT / "recipes/gpt2-124m.toml"), "--steps", "{steps}", "--json"]
for setting in ("dtype={dtype}", "model.layers={layers}", "model.width={width}", "model.heads={heads}", "model.vocab={vocab}",
                "train.batch={batch}", "train.sequence={seq}"):
    OURS += ["--set", setting]
SHAPE = {"layers": 12, "width": 768, "heads": 12, "vocab": 50304, "batch": 4, "seq": 256, "steps": 4}


def measure(command):
    """Runs a command and returns the JSON object of its last line."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as failure:
        fail(f"{command[0]}: {failure.strerror}")
    if done.returncode != 0:
        fail(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr.strip()[-400:]}")
    try:
        result = json.loads(done.stdout.strip().splitlines()[-1])
        return float(result["tokens_per_second"]), float(result["peak_mb"])
    except (IndexError, KeyError, TypeError, ValueError):
        fail(f"{' '.join(command)}: its last line is no JSON object with tokens_per_second and peak_mb: {done.stdout[-200:]!r}")


def fail(message):
    print(f"peer: {message}", file=sys.stderr)
    sys.exit(2)


def fill(command, values):
    for name, value in values.items():
        command = [part.replace("{" + name + "}", str(value)) for part in command]
    return command


def arguments():
    own, ours = sys.argv[1:], OURS
    if "--" in own:
        own, ours = own[:own.index("--")], own[own.index("--") + 1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default=os.environ.get("INGOT_PEERS", ROOT.parent / "shared/peers"), type=pathlib.Path)
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--arch", default="gpt2", choices=("gpt2", "llama"))
    parser.add_argument("--dtypes", nargs="+", default=["bf16", "fp32"], choices=("bf16", "fp32"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--at-least", nargs="+", type=float, default=[], metavar="RATIO",
                        help="tokens/s relative to the peer's that must be reached, one a dtype")
    parser.add_argument("--at-most-memory", type=float, metavar="RATIO", help="peak memory relative to the peer's, for each dtype")
    parser.add_argument("--json", action="store_true", help="print one JSON object a dtype instead of the table")
    for name, value in SHAPE.items():
        parser.add_argument("--" + name, type=int, default=value)
    chosen = parser.parse_args(own)
    if chosen.at_least and len(chosen.at_least) != len(chosen.dtypes):
        parser.error("--at-least takes one ratio a dtype")
    if not (chosen.peers / "torch_train.py").is_file():
        fail(f"{chosen.peers}: no torch_train.py there: set INGOT_PEERS")
    return chosen, ours


def compare(chosen, ours, dtype):
    shape = {name: getattr(chosen, name) for name in SHAPE}
    torch = [chosen.python, str(chosen.peers / "torch_train.py"), "--arch", chosen.arch, "--dtype", dtype]
    for name, value in shape.items():
        torch += ["--" + name, str(value)]
    runs = {"torch": [], "ingot": []}
    for _ in range(chosen.rounds):
        if ours:  # an empty COMMAND measures the peer alone
            runs["ingot"].append(measure(fill(ours, {**shape, "dtype": dtype.replace("fp", "f")})))
        runs["torch"].append(measure(torch))
    row = {"dtype": dtype, "rounds": chosen.rounds}
    for side, results in runs.items():
        if results:
            speeds, peaks = zip(*results)
            row[side] = {"tokens_per_second": statistics.median(speeds), "peak_mb": statistics.median(peaks),
                         "slowest": min(speeds), "fastest": max(speeds)}
    if ours:
        row["speed_ratio"] = row["ingot"]["tokens_per_second"] / row["torch"]["tokens_per_second"]
        row["memory_ratio"] = row["ingot"]["peak_mb"] / row["torch"]["peak_mb"]
    return row


def show(row, as_json):
    if as_json:
        print(json.dumps(row), flush=True)
        return
    for side in ("ingot", "torch"):
        if side in row:
            r = row[side]
            print(f"{row['dtype']}  {side}  {r['tokens_per_second']:8.1f} tokens/s  ({r['slowest']:.1f} to {r['fastest']:.1f})"
                  f"  {r['peak_mb']:7.0f} MB", flush=True)
    if "speed_ratio" in row:
        print(f"{row['dtype']}  ratio  {row['speed_ratio']:8.2f} in speed, {row['memory_ratio']:.2f} in memory", flush=True)


def main():
    chosen, ours = arguments()
    missed = False
    for index, dtype in enumerate(chosen.dtypes):
        row = compare(chosen, ours, dtype)
        show(row, chosen.json)
        if ours and chosen.at_least and row["speed_ratio"] < chosen.at_least[index]:
            print(f"peer: {dtype}: speed is {row['speed_ratio']:.2f} of the peer's, asked for {chosen.at_least[index]}", file=sys.stderr)
            missed = True
        if ours and chosen.at_most_memory and row["memory_ratio"] > chosen.at_most_memory:
            print(f"peer: {dtype}: memory is {row['memory_ratio']:.2f} of the peer's, asked for {chosen.at_most_memory}", file=sys.stderr)
            missed = True
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
