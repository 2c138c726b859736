"""Files that comparisons of texts read: made of the data folder when a case first needs them."""
import gzip
import json
import pathlib
import subprocess

import convert

TEXTS = {"english": "corpus-prose/botchan_en.txt", "japanese": "corpus-prose/wagahai_ja.txt"}


class Files:
    """`data`: the folder of corpora and tokenizers; `folder`: where made files lie; `ingot`: the program."""

    def __init__(self, data, folder, ingot, root):
        self.data, self.folder, self.ingot, self.root = pathlib.Path(data), pathlib.Path(folder), ingot, root

    def path(self, name):
        if name in TEXTS:
            return self.data / TEXTS[name]
        if name == "cl100k_base.tiktoken":
            return self.data / "tok-openai" / name
        return self.folder / {"code": "code.txt"}.get(name, name)

    def make(self, name):
        """Makes the file of that name where it is not there."""
        path = self.path(name)
        if path.exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        if name == "code":
            rows = (self.data / "corpus-code/code.jsonl").read_text().splitlines()
            path.write_text("\n".join(json.loads(row)["text"] for row in rows))
        elif name == "qwen3.json":
            path.write_bytes(gzip.decompress((self.data / "tok-qwen3/tokenizer.json.gz").read_bytes()))
        elif name == "llama.gguf":
            self.make_model(path)

    def make_model(self, path):
        """A Llama of 0.75 GiB of random bf16 weights with a vocabulary of 32,000 tokens, as GGUF."""
        model = self.folder / "llama"
        if not model.exists():
            convert.write_model(model, 0.75)
            packed = self.data / "tok-mistral_v1/tokenizer.json.gz"
            (model / "tokenizer.json").write_bytes(gzip.decompress(packed.read_bytes()))
        subprocess.run([self.ingot, "convert", str(model), str(path)], cwd=self.root, check=True)
