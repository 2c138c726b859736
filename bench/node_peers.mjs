// Peers that npm brings, timed: node bench/node_peers.mjs FOLDER JOB, FOLDER with a node_modules of them, JOB a JSON object:
//   {"kind": "tokenizers" | "tiktoken", "tokenizer", "file"}   encodes a file, as one text, on one thread
//   {"kind": "train", "files", "threads"}                      byte-level BPE of 30,000 tokens
//   {"kind": "llama", "model", "batch", "prompt", "tokens", "threads"}   llama.cpp writes `tokens` after equal prompts
// Prints JSON: seconds, tokens.
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";
import {join, resolve} from "node:path";
import {pathToFileURL} from "node:url";

const folder = resolve(process.argv[2]);
const job = JSON.parse(process.argv[3]);
process.env.RAYON_NUM_THREADS = String(job.threads ?? 1); // of the Rust core, before it is loaded
const load = createRequire(join(folder, "x.js"));

// Seconds that f takes, and what it returns as tokens.
async function timed(f) {
  const start = performance.now();
  const tokens = await f();
  return {seconds: (performance.now() - start) / 1e3, tokens};
}

// The file as one text: a call for each line would measure calls from JavaScript.
async function encode(all) {
  const text = readFileSync(job.file, "utf8");
  return await timed(() => all(text));
}

async function tokenizers() {
  const tokenizer = load("tokenizers").Tokenizer.fromFile(job.tokenizer);
  return await encode(async text => (await tokenizer.encode(text, null, {addSpecialTokens: false})).getLength());
}

async function tiktoken() {
  const encoding = load("tiktoken").get_encoding(job.tokenizer);
  return await encode(text => encoding.encode(text, [], []).length);
}

async function train() {
  const {Tokenizer, BPE, byteLevelPreTokenizer} = load("tokenizers");
  const tokenizer = new Tokenizer(BPE.empty());
  tokenizer.setPreTokenizer(byteLevelPreTokenizer(false));
  return await timed(() => {
    tokenizer.train(job.files);
    return tokenizer.getVocabSize();
  });
}

// From the moment that all texts have their first token.
async function llama() {
  const entry = join(folder, "node_modules/node-llama-cpp/dist/index.js");
  const {getLlama} = await import(pathToFileURL(entry).href);
  const program = await getLlama({gpu: false, build: "never", logLevel: "error", maxThreads: job.threads});
  const model = await program.loadModel({modelPath: job.model});
  const room = job.prompt + job.tokens + 8;
  const context = await model.createContext({sequences: job.batch, contextSize: room, batchSize: Math.max(512, job.batch),
                                             threads: {ideal: job.threads, min: job.threads}});
  const prompt = Array.from({length: job.prompt}, (_, i) => 300 + i);
  let begun = 0, start = 0, tokens = 0;
  const ready = Promise.withResolvers?.() ?? (() => {
    const out = {};
    out.promise = new Promise(done => { out.resolve = done; });
    return out;
  })();
  await Promise.all(Array.from({length: job.batch}, async () => {
    let written = 0;
    const sequence = context.getSequence();
    for await (const _ of sequence.evaluate(prompt, {temperature: 0, yieldEogToken: true})) {
      if (++written === 1) {
        if (++begun === job.batch) {
          start = performance.now();
          ready.resolve();
        }
        await ready.promise;
      } else {
        ++tokens;
      }
      if (written > job.tokens) break;
    }
  }));
  return {seconds: (performance.now() - start) / 1e3, tokens};
}

console.log(JSON.stringify(await {tokenizers, tiktoken, train, llama}[job.kind]()));
process.exit(0);
