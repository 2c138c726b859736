#!/usr/bin/env python3
"""How a training step grows: tokens/s and memory against sequence length, batch, width, layers and vocabulary.

Each series changes one key of a recipe and leaves the others; `ingot bench step` measures every point. The
table shows what a cliff would be: tokens/s that fall faster than the arithmetic of a token grows (then the
share of the machine's peak falls too), or memory that grows faster than the series.

Writes bench/GROWTH.md, or another file with --out.
"""
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLE = "example: bench/growth.py --only sequence batch --steps 3"

# name → what is set at each point. The tokens of a step stay equal along `sequence`.
SERIES = {
    "sequence": [{"train.sequence": t, "model.context": t, "train.batch": max(1, 16384 // t)}
                 for t in (256, 512, 1024, 2048, 4096, 8192, 16384)],
    "batch": [{"train.batch": b} for b in (1, 2, 4, 8, 16, 32, 64)],
    "width": [{"model.width": w, "model.heads": w // 64, "model.hidden": 0} for w in (128, 256, 384, 512, 768, 1024)],
    "layers": [{"model.layers": n} for n in (1, 2, 4, 8, 16, 32)],
    "vocabulary": [{"model.vocab": v} for v in (1024, 4096, 16384, 32768, 65536, 131072)],
}


def measure(ingot, recipe, settings, steps, limit):
    command = [ingot, "bench", "step", recipe, "--json", "--steps", str(steps)]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit)
    if done.returncode != 0:
        raise SystemExit(f"growth: {' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def bar(value, most, width=24):
    return "█" * max(1, round(width * value / most))


def table(name, points):
    key = next(iter(points[0][0]))
    fastest = max(result["tokens_per_second"] for _, result in points)
    largest = max(result["allocated_peak_mb"] for _, result in points)
    lines = [f"### {name.capitalize()}", "",
             f"| {key} | tokens/s | | share of the peak | memory, MB | |", "|---|---|---|---|---|---|"]
    for settings, result in points:
        rate, memory = result["tokens_per_second"], result["allocated_peak_mb"]
        lines.append(f"| {settings[key]} | {rate:,.0f} | {bar(rate, fastest)} | {100 * result['mfu']:.0f} % "
                     f"| {memory:,} | {bar(memory, largest)} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, epilog=EXAMPLE,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ingot", default="build/release/ingot", help="the program")
    parser.add_argument("--recipe", default="recipes/llama-12m.toml", help="what the series start from")
    parser.add_argument("--only", nargs="+", choices=SERIES, default=list(SERIES), help="series")
    parser.add_argument("--steps", type=int, default=3, help="steps a point, after one to warm up")
    parser.add_argument("--limit", type=float, default=900, help="seconds a point may take")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "bench/GROWTH.md")
    arguments = parser.parse_args()
    parts = []
    for name in arguments.only:
        points = []
        for settings in SERIES[name]:
            result = measure(arguments.ingot, arguments.recipe, settings, arguments.steps, arguments.limit)
            print(f"growth: {name} {settings}: {result['tokens_per_second']:.0f} tokens/s, "
                  f"{result['allocated_peak_mb']} MB", file=sys.stderr, flush=True)
            points.append((settings, result))
        parts.append(table(name, points))
    machine = subprocess.run(["lscpu"], capture_output=True, text=True).stdout
    model = next((line.split(":")[1].strip() for line in machine.splitlines() if line.startswith("Model name")), "?")
    page = [f"# How a training step grows\n\n`{' '.join(['bench/growth.py'] + sys.argv[1:])}` on {model}: one key of "
            f"`{arguments.recipe}` changes along each table. Memory is what the allocator held at its peak.\n"]
    arguments.out.write_text("\n".join(page + parts))
    print(f"growth: wrote {arguments.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
