#!/usr/bin/env python3
"""Compares Ingot with its peers and with the limit of the machine, and writes bench/RESULTS.md.

Each comparison runs the two sides in turns (Ingot, peer, Ingot, peer, ...), never together, and compares
medians. Other work on the machine disturbs both sides, but not equally: read the spread. What was measured
goes into bench/results.json, a record for each machine and case, and from there into bench/RESULTS.md between
its two marks.

The peers are PyTorch: torch_train.py in the folder --peers for training steps, bench/torch_ops.py for
operations. They run without OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE in their environment: on some machines
these are set for other programs, and they cripple the OpenBLAS that PyTorch multiplies with. A PyTorch that
multiplies f32 with the reference BLAS (Debian's libblas3, several times slower) is no peer: it is refused,
`apt-get install libopenblas0-pthread` mends it. Without PyTorch or torch_train.py, Ingot is compared with the
limit alone. Of what reads and writes text they are npm's tokenizers, tiktoken and node-llama-cpp (llama.cpp), through
bench/node_peers.mjs, in the folder --node, into which npm installs them without their scripts where they are not there;
these cases read the corpora of the folder --data.

Exits 1 where something asked for is missed, 2 where a side does not run or does not end within --limit.
"""
import argparse
import datetime
import importlib.util
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import compare_cases
import compare_files
import compare_results

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE, RECORD = ROOT / "bench/RESULTS.md", ROOT / "bench/results.json"
PACKAGES = ("tokenizers@0.23", "tiktoken@1", "node-llama-cpp@3", "@node-llama-cpp/linux-x64@3")
KEPT_FROM_PEERS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
EXAMPLE = "example: bench/compare.py --only gpt2-124m-b4-t256-bf16 attention-t4096 --turns 3"


# Which library the f32 products of PyTorch come from: the mapped ones that are known to be fast.
LOOK_AT_TORCH = """
import json, re, torch
torch.ones(64, 64) @ torch.ones(64, 64)
fast = sorted(set(re.findall("openblas|mkl|blis", open("/proc/self/maps").read().lower())))
fast += ["mkl"] if torch.backends.mkl.is_available() and "mkl" not in fast else []
print(json.dumps({"version": torch.__version__, "multiplies_with": ", ".join(fast)}))
"""


class Failed(Exception):
    """A program that did not give what it was asked for; says which and why."""


class TooSlow(Failed):
    pass


def say(message):
    print(f"compare: {message}", file=sys.stderr, flush=True)


def call(command, limit, without=(), threads=None):
    """Runs a command from the root of the tree, at most `limit` seconds, and returns what it printed."""
    environment = {key: value for key, value in os.environ.items() if key not in without}
    if threads:
        environment["OMP_NUM_THREADS"] = str(threads)
    shown = shlex.join(command)
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, timeout=limit, capture_output=True,
                              text=True)
    except subprocess.TimeoutExpired:
        raise TooSlow(f"{shown}: did not end in {limit:g} s") from None
    except OSError as failure:
        raise Failed(f"cannot run {command[0]}: {failure.strerror}") from None
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["nothing on stderr"]
        code = done.returncode
        status = f"exit status {code}" if code > 0 else f"killed by signal {-code}"
        raise Failed(f"{shown}: {status}: {said[-1][-300:]}")
    return done.stdout


def read_json(command, printed, read):
    """read() of the JSON object that the command printed; Failed where it is not what read() expects."""
    try:
        return read(json.loads(printed[printed.index("{"):]))
    except KeyError as missing:
        raise Failed(f"{shlex.join(command)}: its JSON has no {missing}") from None
    except (TypeError, ValueError, ZeroDivisionError) as wrong:
        raise Failed(f"{shlex.join(command)}: not the JSON expected: {wrong}") from None


class Sides:
    """How the two sides are run."""

    def __init__(self, chosen):
        self.ingot, self.python = chosen.ingot, chosen.python
        self.limit, self.threads = chosen.limit, chosen.threads
        self.node = chosen.node
        self.packages = None  # versions of npm's, once looked for
        self.torch = None  # its version, once looked for
        self.peak = None  # what `ingot bench peak` measured

    def ask_ingot(self, arguments, read):
        command = [self.ingot, *arguments]
        return read_json(command, call(command, self.limit, threads=self.threads), read)

    def has(self, kind):
        return self.torch if kind == "torch" else self.packages

    def peer_command(self, arguments, kind="torch"):
        if kind == "node":
            return ["node", "bench/node_peers.mjs", self.node, *arguments]
        return [self.python, *arguments]

    def ask_peer(self, arguments, read, kind="torch"):
        command = self.peer_command(arguments, kind)
        return read_json(command, call(command, self.limit, KEPT_FROM_PEERS, self.threads), read)

    def find_torch(self):
        try:
            found = self.ask_peer(["-c", LOOK_AT_TORCH], dict)
        except Failed as failure:
            say(f"no PyTorch (--python PROGRAM): compared with the machine's limit only: {failure}")
            return
        if not found["multiplies_with"]:
            raise Failed(f"PyTorch {found['version']} multiplies with neither OpenBLAS, MKL nor BLIS: no fair peer; "
                         "apt-get install libopenblas0-pthread, or give another one with --python")
        self.torch = f"{found['version']} with {found['multiplies_with']}"

    def find_packages(self):
        """npm's packages; installs those that are missing."""
        names = [package.rsplit("@", 1)[0] for package in PACKAGES]
        about = [ROOT / self.node / "node_modules" / name / "package.json" for name in names]
        try:
            if not all(path.exists() for path in about):
                (ROOT / self.node).mkdir(parents=True, exist_ok=True)
                call(["npm", "install", "--prefix", self.node, "--ignore-scripts", "--no-audit", "--no-fund",
                      *PACKAGES], self.limit)
            self.packages = [f"{name} {json.loads(path.read_text())['version']}"
                             for name, path in zip(names[:3], about)]
        except (Failed, OSError) as failure:
            say(f"no packages of npm (--node FOLDER): texts are not compared with a peer: {failure}")

    def measure_peak(self):
        def read(result):
            return {key: float(result[key]) for key in ("bf16_flops", "f32_flops", "memory_bytes_per_second")}

        self.peak = self.ask_ingot(["bench", "peak", "--json"], read)


def versions(sides):
    """What ran: Ingot, its oneDNN and kernels as far as `ingot doctor` says, PyTorch."""
    found = [call([sides.ingot, "--version"], sides.limit).strip()]
    try:
        doctor = sides.ask_ingot(["doctor", "--json", "--no-speed"], dict)
    except Failed:
        doctor = {}
    entries = {entry["what"]: entry["value"] for section in doctor.values() for entry in section}
    if "oneDNN" in entries:
        found.append(f"oneDNN {entries['oneDNN']}")
    if "kernels run with" in entries:
        found.append(f"kernels {entries['kernels run with']}")
    if sides.torch:
        found.append(f"PyTorch {sides.torch}")
    found += sides.packages or []
    return found + [f"{sides.threads} threads"]


def machine():
    """Processor, cores, memory and which bf16 instructions there are."""
    entries = {}
    with open("/proc/cpuinfo") as file:
        for line in file:
            key, _, value = line.partition(":")
            entries.setdefault(key.strip(), value.strip())
    flags = entries.get("flags", "").split()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    amx = "AMX bf16" if "amx_bf16" in flags else "no AMX"
    bf16 = "AVX-512 BF16" if "avx512_bf16" in flags else "no AVX-512 BF16"
    family = f"family {entries.get('cpu family', '?')} model {entries.get('model', '?')}"
    name = entries.get("model name", "unknown processor")
    return f"{name} ({family}), {os.cpu_count()} cores, {memory:.0f} GiB, {amx}, {bf16}"


def turn_of_peer(case, sides):
    """A reading of the peer, or words that say why there is none."""
    try:
        return sides.ask_peer(case.peer, case.read_peer, case.peer_of), None
    except TooSlow:
        return None, f"none: {case.work} did not end in {sides.limit:g} s"
    except Failed as failure:
        say(f"{case.name}: {failure}")
        return None, "none: it failed"


def compare(case, sides, turns):
    """The rows of a case. A peer that failed once is not run again; where Ingot fails, so does the case."""
    ours, peers, peer_failure = [], [], None
    with_peer = case.peer and sides.has(case.peer_of)
    main_measure = case.questions[0].measure
    for turn in range(1, turns + 1):
        ours.append(sides.ask_ingot(case.ours, lambda result: case.read(result, sides.peak)))
        progress = f"{case.name}: turn {turn} of {turns}: Ingot {in_words(ours[-1], main_measure)}"
        if with_peer and not peer_failure:
            reading, peer_failure = turn_of_peer(case, sides)
            if reading:
                peers.append(reading)
            progress += f", peer {in_words(reading, main_measure) if reading else peer_failure}"
        say(progress)
    return [compare_results.row_of(question, ours, peers, peer_failure) for question in case.questions]


def in_words(reading, measure):
    return f"{compare_results.number(reading.values[measure] * measure.scale)} {measure.unit}"


def default_python():
    """The Python that runs this where it has PyTorch, else the one of Debian's python3-torch."""
    return sys.executable if importlib.util.find_spec("torch") else "/usr/bin/python3"


def positive(kind):
    def read(text):
        value = kind(text)
        if not value > 0:
            raise ValueError
        return value

    read.__name__ = f"positive {kind.__name__}"  # argparse names it in its message
    return read


def from_root(path):
    """A path as seen from the root of the tree, where all programs run; absolute where it is far from it."""
    full = os.path.abspath(path)
    return os.path.relpath(full, ROOT) if pathlib.Path(full).is_relative_to(ROOT.parent) else full


def program(name):
    """A program: a path, or a name to be looked up in PATH."""
    return from_root(name) if "/" in name else name


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, epilog=EXAMPLE,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="the cases to run; all where left out")
    parser.add_argument("--list", action="store_true", help="print the cases and what each side would run")
    parser.add_argument("--turns", type=positive(int), default=5, help="turns of each side (default 5)")
    parser.add_argument("--limit", type=positive(float), default=600, metavar="SECONDS",
                        help="longest that one turn of a side may take (default 600)")
    parser.add_argument("--threads", type=positive(int), default=len(os.sched_getaffinity(0)),
                        help="threads of both sides (default: the usable cores)")
    parser.add_argument("--ingot", default=str(ROOT / "build/release/ingot"), type=program,
                        metavar="PROGRAM", help="default build/release/ingot")
    parser.add_argument("--peers", default=str(ROOT.parent / "shared/peers"), type=from_root,
                        metavar="FOLDER", help="where torch_train.py is (default ../shared/peers)")
    parser.add_argument("--data", default=str(ROOT.parent / "shared/data"), type=from_root, metavar="FOLDER",
                        help="corpora and tokenizers (default ../shared/data)")
    parser.add_argument("--node", default="build/bench/node", type=from_root, metavar="FOLDER",
                        help="where npm's packages are, or are put (default build/bench/node)")
    parser.add_argument("--python", default=default_python(), type=program, metavar="PROGRAM",
                        help="a Python that has PyTorch")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--no-write", action="store_true", help="leave results.json and RESULTS.md alone")
    return parser, parser.parse_args()


def cases_of(parser, chosen):
    """The chosen cases and the names of all; without torch_train.py, training steps have no peer."""
    torch_train = pathlib.Path(chosen.peers) / "torch_train.py"
    there = (ROOT / torch_train).is_file()
    if not there:
        say(f"no {torch_train} (--peers FOLDER): training steps are compared with the machine's limit only")
    files = None
    if (ROOT / chosen.data).is_dir():
        files = compare_files.Files((ROOT / chosen.data).resolve(), ROOT / "build/bench", chosen.ingot, ROOT)
    else:
        say(f"no {chosen.data} (--data FOLDER): nothing of texts is compared")
    every = compare_cases.all_cases(ROOT, str(torch_train) if there else None, chosen.threads, files)
    names = [case.name for case in every]
    for name in chosen.only or ():
        if name not in names:
            parser.error(f"--only: no case {name}; the cases are {', '.join(names)}")
    return [case for case in every if case.name in (chosen.only or names)], names, files


def show(cases, sides):
    for case in cases:
        print(case.name)
        print("  Ingot:", shlex.join([sides.ingot, *case.ours]))
        print("  peer: ", shlex.join(sides.peer_command(case.peer, case.peer_of)) if case.peer else "none")


def command_shown():
    """This program's command line without the folders that only this machine has."""
    words = [re.sub("(^|=)/.*/", r"\1", word) for word in sys.argv[1:]]
    return shlex.join(["bench/compare.py", *words])


def prepare(cases, chosen, sides, files):
    """Looks for the peers, makes what cases read, measures the machine's limits, and describes the run."""
    load = os.getloadavg()[0]
    if any(case.peer_of == "torch" for case in cases):
        sides.find_torch()
    if any(case.peer_of == "node" for case in cases):
        sides.find_packages()
    for name in sorted({name for case in cases for name in case.files}):
        files.make(name)
    sides.measure_peak()
    return {"date": datetime.date.today().isoformat(), "command": command_shown(), "turns": chosen.turns,
            "versions": versions(sides), "load": load, "peak": sides.peak}


def run_all(cases, names, chosen, sides, files):
    """Compares and returns the exit status. Writes after each case: a stopped run keeps what it has."""
    run, records, status = prepare(cases, chosen, sides, files), [], 0
    for case in cases:
        try:
            rows = compare(case, sides, chosen.turns)
        except Failed as failure:
            say(f"{case.name}: {failure}")
            status = 2
            continue
        record = {"machine": machine(), "case": case.name, "run": run, "rows": rows}
        records.append(record)
        status = max(status, compare_results.exit_status(rows))
        if not chosen.no_write:
            compare_results.save(RECORD, record)
            compare_results.write_page(PAGE, compare_results.load(RECORD), names)
    print(json.dumps(records, indent=1) if chosen.json else compare_results.table(records))
    return status


def main():
    parser, chosen = arguments()
    cases, names, files = cases_of(parser, chosen)
    sides = Sides(chosen)
    if chosen.list:
        show(cases, sides)
        return 0
    try:
        if not chosen.no_write:
            compare_results.parts_of(PAGE)  # says what is wrong with the page before hours of measuring
        return run_all(cases, names, chosen, sides, files)
    except (Failed, compare_results.PageError) as failure:
        say(failure)
        return 2


if __name__ == "__main__":
    sys.exit(main())
