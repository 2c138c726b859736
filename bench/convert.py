#!/usr/bin/env python3
"""Times `ingot convert` and `ingot quantize` on a large model beside the rates of the disk and of memory, and prints a
table for RESULTS.md.

  bench/convert.py --ingot build/release/ingot --folder FOLDER [--gib 4] [--turns 3]

Writes a Llama of about --gib GiB of random bf16 weights below FOLDER, which must have room for three times that. Each
turn runs every case once: cases are measured in turns, never together. What a case is compared with is measured in the
same turns: reading the file into /dev/null and copying it (the disk, or the page cache where the file fits into memory).
Columns: seconds (median), GiB/s of the file that is read, the share of the copy's rate, and the most resident memory.
"""
import argparse, json, os, pathlib, shutil, statistics, struct, subprocess, sys, time

LAYER = [("self_attn.q_proj", "d", "d"), ("self_attn.k_proj", "d", "d"), ("self_attn.v_proj", "d", "d"),
         ("self_attn.o_proj", "d", "d"), ("mlp.gate_proj", "f", "d"), ("mlp.up_proj", "f", "d"),
         ("mlp.down_proj", "d", "f")]


def tensors(width, hidden, vocab, layers):
    sizes = {"d": width, "f": hidden}
    yield "model.embed_tokens.weight", [vocab, width]
    for layer in range(layers):
        for name, rows, columns in LAYER:
            yield f"model.layers.{layer}.{name}.weight", [sizes[rows], sizes[columns]]
        for name in ("input_layernorm", "post_attention_layernorm"):
            yield f"model.layers.{layer}.{name}.weight", [width]
    yield "model.norm.weight", [width]
    yield "lm_head.weight", [vocab, width]


def write_model(folder, gib):
    """bf16 numbers around 0.02: the high byte 0x3c or 0xbc, the low byte random."""
    width, hidden, vocab = 2048, 5632, 32000
    per_layer = 2 * (4 * width * width + 3 * width * hidden)
    layers = max(1, round((gib * 2**30 - 4 * vocab * width) / per_layer))
    folder.mkdir(parents=True)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": vocab, "hidden_size": width,
              "intermediate_size": hidden, "num_hidden_layers": layers, "num_attention_heads": 16,
              "num_key_value_heads": 16, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5,
              "rope_theta": 10000.0, "tie_word_embeddings": False, "torch_dtype": "bfloat16", "hidden_act": "silu"}
    (folder / "config.json").write_text(json.dumps(config))
    header, at = {}, 0
    for name, shape in tensors(width, hidden, vocab, layers):
        size = 2
        for side in shape:
            size *= side
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    block = bytearray(os.urandom(1 << 24))
    for i in range(1, len(block), 2):
        block[i] = 0x3C | (block[i] & 0x80)
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        while at > 0:
            file.write(block[:min(at, len(block))])
            at -= len(block)
    return (folder / "model.safetensors").stat().st_size


def run(command):
    """Seconds and the most resident bytes of one run."""
    before = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"convert: {' '.join(command)}: {errors.decode(errors='replace').strip()}")
    return time.perf_counter() - before, usage.ru_maxrss * 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ingot", default="build/release/ingot")
    parser.add_argument("--folder", required=True, type=pathlib.Path)
    parser.add_argument("--gib", type=float, default=4)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    model, out = options.folder / "convert-model", options.folder / "convert-out"
    for path in (model, out):
        shutil.rmtree(path, ignore_errors=True)
    size = write_model(model, options.gib)
    source, gguf = str(model / "model.safetensors"), str(options.folder / "convert-model.gguf")
    cases = {
        "read the file": ["dd", f"if={source}", "of=/dev/null", "bs=16M"],
        "copy the file": ["dd", f"if={source}", f"of={out}", "bs=16M"],
        "convert to GGUF bf16": [options.ingot, "convert", str(model), gguf],
        "convert GGUF to a folder": [options.ingot, "convert", gguf, str(out)],
        "convert to GGUF f16": [options.ingot, "convert", str(model), str(out) + ".gguf", "--dtype", "f16"],
        "quantize to Q8_0": [options.ingot, "quantize", str(model), str(out) + ".gguf", "--type", "Q8_0"],
        "quantize to Q4_K": [options.ingot, "quantize", str(model), str(out) + ".gguf", "--type", "Q4_K"],
        "ckpt verify": [options.ingot, "ckpt", "verify", str(model)],
        "load and write a token": [options.ingot, "generate", str(model), "--ids", "--prompt", "1", "--tokens", "1"],
    }
    found = {name: [] for name in cases}
    for _ in range(options.turns):
        for name, command in cases.items():
            found[name].append(run(command))
            if out.is_dir():
                shutil.rmtree(out)
            for path in (out, pathlib.Path(str(out) + ".gguf")):
                path.unlink(missing_ok=True)
    rate = {name: size / 2**30 / statistics.median(seconds for seconds, _ in runs) for name, runs in found.items()}
    print(f"{size / 2**30:.2f} GiB of bf16, {os.cpu_count()} cores, {options.turns} turns\n")
    print("| case | s | GiB/s | of the copy's rate | resident MiB |\n|---|---|---|---|---|")
    for name, runs in found.items():
        seconds = statistics.median(one for one, _ in runs)
        resident = max(one for _, one in runs) / 2**20
        print(f"| {name} | {seconds:.2f} | {rate[name]:.2f} | {100 * rate[name] / rate['copy the file']:.0f} % | "
              f"{resident:.0f} |")
    shutil.rmtree(model)
    pathlib.Path(gguf).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
