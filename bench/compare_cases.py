"""The comparisons of bench/compare.py: how each side is called, what is read from it, what is asked."""
import json
import tomllib
from dataclasses import dataclass
from typing import Callable


@dataclass(frozen=True)
class Measure:
    """What is compared. A ratio is Ingot's value over the other; where `inverse`, the other over Ingot's."""

    name: str
    unit: str
    scale: float  # from what the programs print to `unit`
    inverse: bool = False

    def share(self, ours, other):
        return other / ours if self.inverse else ours / other


SPEED = Measure("speed", "tokens/s", 1)
TIME = Measure("time", "ms", 1e3, inverse=True)
RATE = Measure("speed", "MB/s", 1e-6)
PROMPT = Measure("prompt", "GFLOP/s", 1e-9)
MEMORY = Measure("peak memory", "MiB", 2**-20)


@dataclass(frozen=True)
class Asked:
    """A bound on the ratio to the peer or on the share of the machine's limit; of memory an upper one."""

    of: str  # "ratio" or "share"
    bound: float


@dataclass(frozen=True)
class Question:
    measure: Measure
    asked: tuple[Asked, ...] = ()


@dataclass(frozen=True)
class Reading:
    """One turn of one side: values, and for Ingot the machine's limits, in the programs' units."""

    values: dict[Measure, float]
    limits: dict[Measure, float]

    def __post_init__(self):
        for measure, value in [*self.values.items(), *self.limits.items()]:
            if not value > 0:
                raise ValueError(f"{measure.name} or its limit is {value}")


@dataclass(frozen=True)
class Case:
    name: str
    questions: tuple[Question, ...]
    ours: list[str]  # after `ingot`
    read: Callable[[dict, dict], Reading]  # of what Ingot printed and what `ingot bench peak` printed
    peer: list[str] | None  # after `python`, or after `node` and the folder of its packages
    read_peer: Callable[[dict], Reading] | None
    work: str = "one turn"  # what the peer does in a turn
    peer_of: str = "torch"  # or "node"
    files: tuple[str, ...] = ()  # that it reads, of bench/compare_files.py


def asked(ratio=None, share=None):
    bounds = (("ratio", ratio), ("share", share))
    return tuple(Asked(of, bound) for of, bound in bounds if bound is not None)


def training_step(name, questions, recipe_path, dtype, batch, sequence, steps, torch_train, threads):
    """A case of `steps` timed training steps and one to warm up; the peer's model is the recipe's."""
    recipe = f"recipes/{recipe_path.name}"
    model = tomllib.loads(recipe_path.read_text())["model"]
    ours = ["bench", "step", recipe, "--set", f"dtype={dtype}", "--set", f"train.batch={batch}"]
    ours += ["--set", f"train.sequence={sequence}", "--steps", str(steps), "--json"]
    peer = [torch_train, "--arch", model["architecture"], "--dtype", dtype.replace("f32", "fp32")]
    shape = {key: model[key] for key in ("layers", "width", "heads", "vocab")}
    shape |= {"ff": model.get("hidden", 0), "batch": batch, "seq": sequence}
    for key, value in (shape | {"steps": steps + 1, "threads": threads}).items():
        peer += ["--" + key, str(value)]

    def read(result, peak):
        highest = max(result["peak_flops"], peak[f"{dtype}_flops"])
        flops_per_token = result["flops_per_second"] / result["tokens_per_second"]
        return Reading({SPEED: result["tokens_per_second"], MEMORY: result["peak_mb"] * 2**20},
                       {SPEED: highest / flops_per_token})

    def read_peer(result):
        return Reading({SPEED: result["tokens_per_second"], MEMORY: result["peak_mb"] * 2**20}, {})

    return Case(name, questions, ours, read, peer if torch_train else None, read_peer, f"{steps + 1} steps")


def only(entries, name):
    """The entry of that name; ValueError where there is none."""
    for entry in entries:
        if entry["name"] == name:
            return entry
    raise ValueError(f"no entry named {name!r} among {[entry['name'] for entry in entries]}")


def read_torch_ops(result):
    return Reading({TIME: result["seconds"], MEMORY: result["peak_bytes"]}, {})


def operation(name, ingot_name, torch_ops, torch_name, questions, threads, rows=None):
    def read(result, peak):
        entry = only(result["ops"], ingot_name)
        return Reading({TIME: entry["seconds"], MEMORY: entry["peak_bytes"]}, {TIME: entry["limit_seconds"]})

    ours = ["bench", "ops", "--only", ingot_name, "--json"]
    peer = [torch_ops, torch_name, "--threads", str(threads)] + (["--rows", str(rows)] if rows else [])
    return Case(name, questions, ours, read, peer, read_torch_ops)


def optimizer(name, torch_ops, questions, threads):
    def read(result, peak):
        entry = only(result["rules"], "adamw")
        return Reading({TIME: entry["seconds"]}, {TIME: entry["seconds"] * entry["share"]})

    peer = [torch_ops, "adamw", "--threads", str(threads)]
    return Case(name, questions, ["bench", "optim", "--only", "adamw", "--json"], read, peer, read_torch_ops)


def generation(name, recipe, questions):
    def read(result, peak):
        speed = result["tokens_per_second"]
        return Reading({SPEED: speed, PROMPT: result["prompt_flops_per_second"]},
                       {SPEED: speed / result["share"], PROMPT: peak["bf16_flops"]})

    ours = ["bench", "generate", recipe, "--set", "dtype=bf16", "--prompt", "512", "--json"]
    return Case(name, questions, ours, read, None, None)


def node_case(name, questions, ours, read, job, read_peer, files):
    return Case(name, questions, ours, read, [json.dumps(job)], read_peer, peer_of="node", files=files)


def encoding(name, files, kind, own, theirs, text, ratio):
    """A tokenizer over a file as one text, one thread on either side. `files`: of bench/compare_files.py."""
    job = {"kind": kind, "tokenizer": theirs, "file": str(files.path(text)), "threads": 1}

    def read(result, peak=None):
        return Reading({RATE: files.path(text).stat().st_size / result["seconds"]}, {})

    return node_case(name, (Question(RATE, asked(ratio=ratio)),),
                     ["bench", "tokenizer", "encode", own, str(files.path(text)), "--whole", "--json"], read, job, read,
                     (text, "qwen3.json"))


def bpe_training(name, files, text, threads):
    job = {"kind": "train", "files": [str(files.path(text))], "threads": threads}

    def read(result, peak=None):
        return Reading({TIME: result["seconds"]}, {})

    return node_case(name, (Question(TIME, asked(ratio=2)),),
                     ["bench", "tokenizer", "train", str(files.path(text)), "--json"], read, job, read,
                     (text,))


def beside_llama_cpp(name, files, batch, ratio, threads):
    """One GGUF file of random bf16 weights, written from by either program: `batch` texts at once."""
    model = str(files.path("llama.gguf"))
    job = {"kind": "llama", "model": model, "batch": batch, "prompt": 16, "tokens": 64, "threads": threads}

    def read(result, peak):
        speed = result["tokens_per_second"]
        return Reading({SPEED: speed}, {SPEED: speed / result["share"]})

    return node_case(name, (Question(SPEED, asked(ratio=ratio)),),
                     ["bench", "generate", model, "--batch", str(batch), "--prompt", "16", "--tokens", "64", "--json"],
                     read, job, lambda result: Reading({SPEED: result["tokens"] / result["seconds"]}, {}), ("llama.gguf",))


def text_cases(files, threads):
    """What tokenizes, beside the packages of npm. English and code are asked to be twice as fast."""
    texts, out = (("english", 2), ("code", 2), ("japanese", 1)), []
    qwen, ranks = str(files.path("qwen3.json")), str(files.path("cl100k_base.tiktoken"))
    for text, ratio in texts:
        out.append(encoding(f"encode-qwen3-{text}", files, "tokenizers", qwen, qwen, text, ratio))
    for text, ratio in texts:
        out.append(encoding(f"encode-cl100k-{text}", files, "tiktoken", ranks, "cl100k_base", text, ratio))
    return out + [bpe_training(f"train-bpe-{text}", files, text, threads) for text, _ in texts]


def all_cases(root, torch_train, threads, files):
    """Every case, in the order of the table. `torch_train`: the peer's program, None where there is none; `files`:
    what the cases of texts read (bench/compare_files.py), None where there is no data."""
    gpt2, llama, ops = "recipes/gpt2-124m.toml", "recipes/llama-12m.toml", "bench/torch_ops.py"

    def step(name, recipe, dtype, batch, sequence, steps, *questions):
        return training_step(name, questions, root / recipe, dtype, batch, sequence, steps, torch_train,
                             threads)

    return [
        step("gpt2-124m-b4-t256-bf16", gpt2, "bf16", 4, 256, 3,
             Question(SPEED, asked(ratio=4.5)), Question(MEMORY, asked(ratio=0.72))),
        step("gpt2-124m-b4-t256-f32", gpt2, "f32", 4, 256, 3,
             Question(SPEED, asked(ratio=2)), Question(MEMORY)),
        step("gpt2-124m-b8-t1024-bf16", gpt2, "bf16", 8, 1024, 1,
             Question(SPEED, asked(ratio=10, share=0.30)), Question(MEMORY, asked(ratio=0.5))),
        step("llama-12m-b12-t256-bf16", llama, "bf16", 12, 256, 10,
             Question(SPEED, asked(ratio=5)), Question(MEMORY)),
        operation("attention-t4096", "attention t4096", ops, "attention",
                  (Question(TIME, asked(ratio=5)), Question(MEMORY)), threads),
        operation("linear-cross-entropy-v50k", "linear_cross_entropy v50k", ops, "linear_cross_entropy",
                  (Question(TIME, asked(ratio=2)), Question(MEMORY)), threads),
        operation("linear-cross-entropy-v50k-b8-t1024", "linear_cross_entropy t1024 v50k", ops,
                  "linear_cross_entropy", (Question(TIME, asked(ratio=2)), Question(MEMORY, asked(ratio=0.2))),
                  threads, rows=8 * 1024),
        optimizer("adamw-124m", ops, (Question(TIME, asked(share=0.75)),), threads),
        generation("generate-gpt2-124m-bf16-b1", gpt2,
                   (Question(SPEED, asked(share=0.70)), Question(PROMPT, asked(share=0.50)))),
    ] + (text_cases(files, threads) + [
        beside_llama_cpp("generate-llama-cpp-b1", files, 1, 1, threads),
        beside_llama_cpp("generate-llama-cpp-b16", files, 16, 2, threads),
    ] if files else [])
