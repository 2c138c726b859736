#include "ingot/cli/serve_server.h"

namespace ingot {

// One file without anything from elsewhere: it works offline, and its own policy forbids the rest.
const char* const chat_page = R"PAGE(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'">
<title>Ingot</title>
<style>
:root { color-scheme: light dark; --line: #8884; --user: #8882; }
body { margin: 0 auto; max-width: 46rem; min-height: 100vh; display: flex; flex-direction: column; font: 16px/1.5 system-ui, sans-serif; }
header, form { display: flex; gap: .5rem; padding: .75rem; align-items: center; }
header { border-bottom: 1px solid var(--line); flex-wrap: wrap; }
header h1 { font-size: 1rem; margin: 0 auto 0 0; }
header label { font-size: .85rem; }
header input { width: 5rem; }
#log { flex: 1; padding: .75rem; overflow-wrap: anywhere; }
.turn { white-space: pre-wrap; padding: .5rem .75rem; border-radius: .5rem; margin: .5rem 0; }
.user { background: var(--user); margin-left: 15%; }
.error { color: #c33; }
form { position: sticky; bottom: 0; background: Canvas; border-top: 1px solid var(--line); }
textarea { flex: 1; font: inherit; resize: vertical; padding: .5rem; }
button { font: inherit; padding: .5rem 1rem; }
</style>
</head>
<body>
<header>
<h1 id="model">Ingot</h1>
<label>temperature <input id="temperature" type="number" min="0" max="2" step="0.1" value="1"></label>
<label>tokens <input id="tokens" type="number" min="1" step="1" value="512"></label>
<label>key <input id="key" type="password" autocomplete="off"></label>
<button id="clear" type="button">Clear</button>
</header>
<main id="log" aria-live="polite"></main>
<form id="form">
<textarea id="text" rows="2" placeholder="Write, Enter sends, Shift+Enter begins a line" aria-label="Message"></textarea>
<button id="send">Send</button>
</form>
<script>
"use strict";
const at = id => document.getElementById(id);
let messages = [], running = null;

function show(role, text) {
  const turn = document.createElement("div");
  turn.className = "turn " + role;
  turn.textContent = text;
  at("log").append(turn);
  turn.scrollIntoView({ block: "end" });
  return turn;
}

function headers() {
  const key = at("key").value;
  return Object.assign({ "Content-Type": "application/json" }, key ? { Authorization: "Bearer " + key } : {});
}

async function failure(response) {
  try { return (await response.json()).error.message; } catch { return "HTTP " + response.status; }
}

// Calls told(data) for every event of a stream.
async function events(response, told) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      if (part.startsWith("data: ") && part !== "data: [DONE]") told(JSON.parse(part.slice(6)));
    }
  }
}

async function send(text) {
  messages.push({ role: "user", content: text });
  show("user", text);
  const turn = show("assistant", "");
  let answer = "", due = false;
  const draw = () => {
    due = false;
    turn.textContent = answer;
    turn.scrollIntoView({ block: "end" });
  };
  running = new AbortController();
  at("send").textContent = "Stop";
  try {
    const response = await fetch("/v1/chat/completions", {
      method: "POST", headers: headers(), signal: running.signal,
      body: JSON.stringify({ messages, stream: true, temperature: Number(at("temperature").value),
                             max_tokens: Number(at("tokens").value) }) });
    if (!response.ok) throw new Error(await failure(response));
    await events(response, data => {
      if (data.error) throw new Error(data.error.message);
      for (const choice of data.choices) answer += choice.delta.content || "";
      if (!due) {  // once a frame, however fast tokens come
        due = true;
        requestAnimationFrame(draw);
      }
    });
    messages.push({ role: "assistant", content: answer });
  } catch (error) {
    if (error.name === "AbortError") messages.push({ role: "assistant", content: answer });
    else { messages.pop(); show("error", error.message); }
  }
  draw();
  running = null;
  at("send").textContent = "Send";
}

at("form").addEventListener("submit", event => {
  event.preventDefault();
  if (running) { running.abort(); return; }
  const text = at("text").value.trim();
  if (text) { at("text").value = ""; send(text); }
});
at("text").addEventListener("keydown", event => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    at("form").requestSubmit();
  }
});
at("clear").addEventListener("click", () => { messages = []; at("log").replaceChildren(); });
fetch("/v1/models", { headers: headers() }).then(r => r.ok ? r.json() : null).then(list => {
  if (list) at("model").textContent = list.data[0].id;
}).catch(() => {});
</script>
</body>
</html>
)PAGE";

}  // namespace ingot
