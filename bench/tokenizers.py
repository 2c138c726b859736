#!/usr/bin/env python3
"""Times encoding and BPE training of Ingot beside the npm packages `tokenizers` (Hugging Face's Rust core) and `tiktoken`, in turns, and
prints a table for RESULTS.md.

  bench/tokenizers.py --ingot build/release/ingot --npm FOLDER --data FOLDER [--turns 5]

FOLDER of --npm holds node_modules with both packages (npm install tokenizers tiktoken); FOLDER of --data the corpora and tokenizers that
the tests use. Encoding is single-threaded in all three: texts are given paragraph by paragraph, as data is tokenized, and whole.
"""
import argparse, gzip, json, os, pathlib, statistics, subprocess, tempfile

PEER = r"""
const fs = require('fs'), path = require('path');
const {createRequire} = require('module');
const load = createRequire(path.join(process.argv[2], 'x.js'));
const job = JSON.parse(process.argv[3]);
(async () => {
  const text = job.file && fs.readFileSync(job.file, 'utf8');
  const parts = job.file && (job.whole ? [text] : text.split('\n'));
  const out = {};
  if (job.kind === 'tokenizers') {
    const t = load('tokenizers').Tokenizer.fromFile(job.tokenizer);
    const start = performance.now();
    let n = 0;
    for (const p of parts) n += (await t.encode(p, null, {addSpecialTokens: false})).getLength();
    out.seconds = (performance.now() - start) / 1e3; out.tokens = n;
  } else if (job.kind === 'tiktoken') {
    const t = load('tiktoken').get_encoding(job.tokenizer);
    const start = performance.now();
    let n = 0;
    for (const p of parts) n += t.encode(p, [], []).length;
    out.seconds = (performance.now() - start) / 1e3; out.tokens = n;
  } else {
    const {Tokenizer, BPE, byteLevelPreTokenizer} = load('tokenizers');
    const t = new Tokenizer(BPE.empty());
    t.setPreTokenizer(byteLevelPreTokenizer(false));
    const start = performance.now();
    t.train(job.files);
    out.seconds = (performance.now() - start) / 1e3; out.tokens = t.getVocabSize();
  }
  console.log(JSON.stringify(out));
})();
"""


def peer(npm, job):
    env = dict(os.environ, RAYON_NUM_THREADS=str(job.pop("threads", 1)))
    with tempfile.NamedTemporaryFile("w", suffix=".js") as script:
        script.write(PEER)
        script.flush()
        run = subprocess.run(["node", script.name, str(npm), json.dumps(job)], capture_output=True, text=True, env=env, check=True)
    return json.loads(run.stdout)


def ours(program, arguments):
    run = subprocess.run([program, "bench", "tokenizer", *arguments, "--json"], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def turns(count, a, b):
    pairs = [(a(), b()) for _ in range(count)]
    return [statistics.median(p[i]["seconds"] for p in pairs) for i in (0, 1)], pairs[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ingot", default="build/release/ingot")
    parser.add_argument("--npm", required=True, type=pathlib.Path)
    parser.add_argument("--data", required=True, type=pathlib.Path)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        qwen = folder / "tokenizer.json"
        qwen.write_bytes(gzip.decompress((options.data / "tok-qwen3/tokenizer.json.gz").read_bytes()))
        code = folder / "code.txt"
        rows = (options.data / "corpus-code/code.jsonl").read_text().splitlines()
        code.write_text("\n".join(json.loads(row)["text"] for row in rows))
        texts = {"English": options.data / "corpus-prose/botchan_en.txt", "code": code,
                 "Japanese": options.data / "corpus-prose/wagahai_ja.txt"}
        peers = [("tokenizers", "Qwen 3", str(qwen), str(qwen)),
                 ("tiktoken", "cl100k_base", str(options.data / "tok-openai/cl100k_base.tiktoken"), "cl100k_base")]
        print("| case | Ingot | peer | ratio |\n|---|---|---|---|")
        for kind, name, own, other in peers:
            for title, path in texts.items():
                for whole in (False, True):
                    flags = ["--whole"] if whole else []
                    (mine, theirs), last = turns(options.turns, lambda: ours(options.ingot, ["encode", own, str(path), *flags]),
                                                 lambda: peer(options.npm, {"kind": kind, "tokenizer": other, "file": str(path), "whole": whole}))
                    assert last[0]["tokens"] == last[1]["tokens"], (name, title, last)
                    size = path.stat().st_size / 1e6
                    print(f"| {name}, {title}, {'whole' if whole else 'by line'} | {size / mine:.1f} MB/s | {kind} {size / theirs:.2f} MB/s | {theirs / mine:.1f}× |", flush=True)
        files = [str(path) for path in texts.values()]
        threads = os.cpu_count()
        (mine, theirs), _ = turns(options.turns, lambda: ours(options.ingot, ["train", *files]),
                                  lambda: peer(options.npm, {"kind": "train", "files": files, "threads": threads}))
        print(f"| BPE training, 30,000 tokens, all cores | {mine:.2f} s | tokenizers {theirs:.2f} s | {theirs / mine:.1f}× |")


if __name__ == "__main__":
    main()
