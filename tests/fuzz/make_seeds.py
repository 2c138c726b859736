#!/usr/bin/env python3
"""Writes those seeds of tests/fuzz/seeds that no editor can: tests/fuzz/make_seeds.py

They are small and valid, packed here by the documentation of their formats: GGUF, SentencePiece, checkpoints of
llama2.c and llm.c, compressed rows.
"""
import gzip
import pathlib
import struct

SEEDS = pathlib.Path(__file__).resolve().parent / "seeds"


class Gguf:
    """The values of a GGUF file of one version; version 1 counts in 32 bits."""

    def __init__(self, version):
        self.version = version
        self.count = "<Q" if version > 1 else "<I"

    def string(self, value):
        return struct.pack(self.count, len(value.encode())) + value.encode()

    def array(self, kind, items):
        return struct.pack("<I", kind) + struct.pack(self.count, len(items)) + b"".join(items)

    def text(self, value):
        return (8, self.string(value))

    def number(self, value):
        return (4, struct.pack("<I", value))

    def real(self, value):
        return (6, struct.pack("<f", value))

    def file(self, values, tensors, data):
        """`tensors`: name, shape (innermost first), type, place in `data`."""
        count = self.count
        out = b"GGUF" + struct.pack("<I", self.version) + struct.pack(count, len(tensors))
        out += struct.pack(count, len(values))
        for key, (kind, value) in values.items():
            out += self.string(key) + struct.pack("<I", kind) + value
        for name, shape, kind, offset in tensors:
            out += self.string(name) + struct.pack("<I", len(shape))
            out += b"".join(struct.pack(count, side) for side in shape) + struct.pack("<IQ", kind, offset)
        return out + b"\0" * (-len(out) % 32) + data


def gguf(version):
    g = Gguf(version)
    values = {
        "general.architecture": g.text("llama"),
        "general.alignment": g.number(32),
        "llama.rope.freq_base": g.real(10000),
        "flag": (7, b"\1"),
        "tokens": (9, g.array(8, [g.string("a"), g.string("")])),
        "nested": (9, g.array(9, [g.array(5, [struct.pack("<i", 1), struct.pack("<i", -1)])])),
    }
    return g.file(values, [("w", (32, 2), 2, 0), ("b", (3,), 0, 64)], b"\x11" * 96)


WIDTH, HIDDEN, HEADS, VOCAB, CONTEXT = 8, 16, 2, 24, 16


def floats(count):
    return struct.pack(f"<{count}f", *[0.01 * (i % 17) - 0.08 for i in range(count)])


def llama_gguf(tokenizer):
    """A whole llama of one layer with a vocabulary for llama.cpp: "llama" (SentencePiece) or "gpt2" (byte-level)."""
    g = Gguf(3)
    pieces = {"llama": ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(16)] + ["\u2581", "o", "n", "on", "\u2581on"],
              "gpt2": ["<|end|>"] + [chr(97 + i) for i in range(20)] + ["\u0120", "on", "\u0120on"]}[tokenizer]
    kinds = [2, 3, 3] + [6] * 16 + [1] * 5 if tokenizer == "llama" else [3] + [1] * 23
    values = {
        "general.architecture": g.text("llama"),
        "llama.context_length": g.number(CONTEXT),
        "llama.embedding_length": g.number(WIDTH),
        "llama.block_count": g.number(1),
        "llama.feed_forward_length": g.number(HIDDEN),
        "llama.attention.head_count": g.number(HEADS),
        "llama.attention.head_count_kv": g.number(1),
        "llama.attention.layer_norm_rms_epsilon": g.real(1e-5),
        "llama.rope.freq_base": g.real(10000),
        "llama.rope.dimension_count": g.number(WIDTH // HEADS),
        "llama.vocab_size": g.number(VOCAB),
        "tokenizer.ggml.model": g.text(tokenizer),
        "tokenizer.ggml.tokens": (9, g.array(8, [g.string(p) for p in pieces])),
        "tokenizer.ggml.token_type": (9, g.array(5, [struct.pack("<i", k) for k in kinds])),
        "tokenizer.ggml.eos_token_id": g.number(2 if tokenizer == "llama" else 0),
        "tokenizer.chat_template": g.text("{% for m in messages %}{{ m.content }}{% endfor %}"),
    }
    if tokenizer == "llama":
        values["tokenizer.ggml.scores"] = (9, g.array(6, [struct.pack("<f", -i) for i in range(VOCAB)]))
        values["tokenizer.ggml.bos_token_id"] = g.number(1)
    else:
        values["tokenizer.ggml.pre"] = g.text("gpt-2")
        values["tokenizer.ggml.merges"] = (9, g.array(8, [g.string("o n"), g.string("\u0120 on")]))
    half = WIDTH // HEADS
    shapes = {"token_embd": (WIDTH, VOCAB), "output_norm": (WIDTH,), "output": (WIDTH, VOCAB),
              "blk.0.attn_norm": (WIDTH,), "blk.0.attn_q": (WIDTH, WIDTH), "blk.0.attn_k": (WIDTH, half),
              "blk.0.attn_v": (WIDTH, half), "blk.0.attn_output": (WIDTH, WIDTH), "blk.0.ffn_norm": (WIDTH,),
              "blk.0.ffn_gate": (WIDTH, HIDDEN), "blk.0.ffn_up": (WIDTH, HIDDEN), "blk.0.ffn_down": (HIDDEN, WIDTH)}
    tensors, data = [], b""
    for name, shape in shapes.items():
        size = shape[0] * (shape[1] if len(shape) > 1 else 1)
        tensors.append((name + ".weight", shape, 0, len(data)))
        data += floats(size)
        data += b"\0" * (-len(data) % 32)
    return g.file(values, tensors, data)


def llama2c(version):
    sizes = struct.pack("<7i", WIDTH, HIDDEN, 1, HEADS, 1, VOCAB, CONTEXT)
    kv = WIDTH // HEADS
    maps = [VOCAB * WIDTH, WIDTH * WIDTH, kv * WIDTH, kv * WIDTH, WIDTH * WIDTH] + [HIDDEN * WIDTH] * 3
    norms = 3 * WIDTH
    if version == 0:
        return sizes + floats(sum(maps) + norms + CONTEXT * kv)
    head = struct.pack("<2i", 0x616b3432, version) + sizes + b"\1"
    if version == 1:
        return head.ljust(256, b"\0") + floats(norms + sum(maps))
    group = 8
    head = (head + struct.pack("<i", group)).ljust(256, b"\0")
    return head + floats(norms) + b"".join(bytes(size) + floats(size // group) for size in maps)


def llmc():
    w, t, padded = WIDTH, 4, 128
    head = struct.pack("<8i", 20240326, 3, t, VOCAB, 1, HEADS, w, padded).ljust(1024, b"\0")
    layer = 4 * w + 3 * w * w + 3 * w + w * w + w + 2 * 4 * w * w + 4 * w + w
    return head + floats(padded * w + t * w + layer + 2 * w)


def protobuf(number, value):
    """A field: bytes, a float or a whole number."""
    def varint(n):
        out = b""
        while n > 127:
            out += bytes([n & 127 | 128])
            n >>= 7
        return out + bytes([n])
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3) + varint(value)


def sentencepiece(kind):
    pieces = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3), ("<0x61>", 0.0, 6), ("\u2581a", -1.0, 1),
              ("b", -2.0, 1), ("ab", -3.0, 1), ("<user>", 0.0, 4)]
    out = b"".join(protobuf(1, protobuf(1, text.encode()) + protobuf(2, score) + protobuf(3, what))
                   for text, score, what in pieces)
    trainer = protobuf(3, kind) + protobuf(35, 1) + protobuf(41, 1) + protobuf(42, 2)
    normalizer = protobuf(1, b"identity") + protobuf(3, 1) + protobuf(4, 1) + protobuf(5, 1)
    return out + protobuf(2, trainer) + protobuf(3, normalizer)


def main():
    rows = b'{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]}\n'
    files = {
        "gguf/version-1": gguf(1), "gguf/version-2": gguf(2), "gguf/version-3": gguf(3),
        "model/llama-pieces": llama_gguf("llama"), "model/llama-bytes": llama_gguf("gpt2"),
        "model/llama2c-0": llama2c(0), "model/llama2c-1": llama2c(1), "model/llama2c-2": llama2c(2),
        "model/llmc": llmc(),
        "sentencepiece/unigram": sentencepiece(1), "sentencepiece/bpe": sentencepiece(2),
        "rows/chat-gzip": gzip.compress(rows, mtime=0),
    }
    for name, content in files.items():
        (SEEDS / name).parent.mkdir(parents=True, exist_ok=True)
        (SEEDS / name).write_bytes(content)


if __name__ == "__main__":
    main()
