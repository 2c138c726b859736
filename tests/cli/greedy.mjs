// node greedy.mjs MODEL COUNT ID…: the COUNT ids that llama.cpp finds likeliest after these, as JSON.
import {getLlama} from "node-llama-cpp";

const [path, count, ...ids] = process.argv.slice(2);
const llama = await getLlama({gpu: false, build: "never", logLevel: "error"});
const model = await llama.loadModel({modelPath: path});
const context = await model.createContext({contextSize: 64});
const out = [];
for await (const token of context.getSequence().evaluate(ids.map(Number), {temperature: 0, yieldEogToken: true})) {
  out.push(token);
  if (out.length == Number(count)) {
    break;
  }
}
console.log(JSON.stringify(out));
process.exit(0);
