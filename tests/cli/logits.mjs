// What llama.cpp computes of GGUF files; run by Node of tests/support/node.h, which defines `input` and `answer`.
// Both are objects by the path of a model. Of ids the answer is the logits after each of them, [T][V];
// of {"ids": [ids], "lora": path} the same with an adapter; of {"texts": […]} the ids of each text; of
// {"embed": [ids]} the embedding. A model that does not load gives {"error": …}.
import {getLlama} from "node-llama-cpp";

const llama = await getLlama({gpu: false, build: "never", logLevel: "error", maxThreads: 2});

async function logits(model, ids, lora) {
  const context = await model.createContext({
    contextSize: 64,
    lora,
    experimentalKvCacheKeyType: "F32",
    experimentalKvCacheValueType: "F32",
  });
  const next = {generateNext: {logits: true, options: {temperature: 1, topK: 0, topP: 1}}};
  const answers = await context.getSequence().controlledEvaluate(ids.map((id) => [id, next]));
  await context.dispose();
  return answers.map((answer) => {
    const row = [];
    for (const [token, value] of answer.next.logits) {
      row[token] = value;
    }
    return row;
  });
}

async function embedding(model, ids) {
  const context = await model.createEmbeddingContext({contextSize: 64});
  const found = await context.getEmbeddingFor(ids);
  await context.dispose();
  return [...found.vector];
}

async function answerOf(path, asked) {
  const model = await llama.loadModel({modelPath: path, vocabOnly: false});
  try {
    if (asked.texts !== undefined) {
      return asked.texts.map((text) => model.tokenize(text, false));
    }
    if (asked.embed !== undefined) {
      return await embedding(model, asked.embed);
    }
    return await logits(model, asked.ids ?? asked, asked.lora);
  } finally {
    await model.dispose();
  }
}

const answers = {};
for (const [path, asked] of Object.entries(input)) {
  try {
    answers[path] = await answerOf(path, asked);
  } catch (error) {
    answers[path] = {error: String(error)};
  }
}
answer(answers);
process.exit(0);
