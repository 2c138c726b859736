#!/usr/bin/env python3
"""Writes a seed corpus for every libFuzzer target: tests/fuzz/make_seeds.py FOLDER makes FOLDER/gguf, ...

The files are small and valid, so that the fuzzer starts inside the parsers: GGUF and safetensors files are packed
here by their documentation, configurations come from tests/oracle/models, templates from tests/oracle/jinja.
"""
import json
import pathlib
import struct
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def gguf(version):
    count = "<Q" if version > 1 else "<I"

    def string(value):
        return struct.pack(count, len(value)) + value.encode()

    values = [
        ("general.architecture", 8, string("llama")),
        ("general.alignment", 4, struct.pack("<I", 32)),
        ("llama.rope.freq_base", 6, struct.pack("<f", 10000)),
        ("flag", 7, b"\1"),
        ("tokens", 9, struct.pack("<I", 8) + struct.pack(count, 2) + string("a") + string("")),
        ("nested", 9, struct.pack("<I", 9) + struct.pack(count, 1) + struct.pack("<I", 5) +
         struct.pack(count, 2) + struct.pack("<ii", 1, -1)),
    ]
    tensors = [("w", (32, 2), 2, 0), ("b", (3,), 0, 64)]
    out = b"GGUF" + struct.pack("<I", version) + struct.pack(count, len(tensors)) + struct.pack(count, len(values))
    for key, kind, value in values:
        out += string(key) + struct.pack("<I", kind) + value
    for name, shape, kind, offset in tensors:
        out += string(name) + struct.pack("<I", len(shape))
        out += b"".join(struct.pack(count, side) for side in shape) + struct.pack("<IQ", kind, offset)
    return out + b"\0" * (-len(out) % 32) + b"\x11" * 96


def safetensors():
    header = {"__metadata__": {"format": "pt"},
              "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
              "b": {"dtype": "BF16", "shape": [20], "data_offsets": [24, 64]}}
    return json.dumps(header).encode()


def tokenizers():
    added = [{"id": 0, "content": "<s>", "special": True, "single_word": False, "lstrip": False, "rstrip": True,
              "normalized": False}]
    models = [
        ({"type": "BPE", "vocab": {"<s>": 0, "a": 1, "b": 2, "ab": 3}, "merges": ["a b"]}, {"type": "ByteLevel"}),
        ({"type": "Unigram", "unk_id": 0, "vocab": [["<s>", 0], ["\u2581a", -1.5], ["b", -2]]},
         {"type": "Metaspace", "replacement": "\u2581"}),
        ({"type": "WordPiece", "unk_token": "<s>", "continuing_subword_prefix": "##",
          "max_input_chars_per_word": 100, "vocab": {"<s>": 0, "a": 1, "##b": 2}}, {"type": "BertPreTokenizer"}),
        ({"type": "WordLevel", "unk_token": "<s>", "vocab": {"<s>": 0, "a": 1}}, {"type": "Whitespace"}),
    ]
    for model, pre_tokenizer in models:
        yield json.dumps({"version": "1.0", "added_tokens": added, "normalizer": {"type": "NFC"},
                          "pre_tokenizer": pre_tokenizer, "model": model}).encode()


def templates():
    yield b"{% for m in messages %}<|{{ m['role'] }}|>{{ m.content | trim }}{% endfor %}"
    for path in sorted((ROOT / "tests/oracle/jinja").glob("*.json")):
        for case in json.loads(path.read_text())["cases"]:
            yield case["template"].encode() if isinstance(case, dict) else case[0].encode()


def main():
    folder = pathlib.Path(sys.argv[1])
    seeds = {"gguf": [gguf(1), gguf(2), gguf(3)], "safetensors": [safetensors()],
             "config": [path.read_bytes() for path in sorted(ROOT.glob("tests/oracle/models/*/config.json"))],
             "tokenizer": list(tokenizers()), "template": list(templates())}
    for target, files in seeds.items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for number, content in enumerate(files):
            (folder / target / f"seed-{number}").write_bytes(content)
        print(f"{target}: {len(files)} seeds")


if __name__ == "__main__":
    main()
