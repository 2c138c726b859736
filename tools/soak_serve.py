#!/usr/bin/env python3
"""Talks to a running `ingot serve` for some minutes, at random and not always nicely, and says whether it held.

  ingot serve MODEL --port 8080 &
  tools/soak_serve.py --port 8080 --minutes 10 [--pid PID] [--clients 16] [--seed 1]

Good requests (chat where the model has a template, completions, embeddings; whole and streamed) must be answered 200
with whole answers, and equal requests with a seed must get equal texts. Bad ones (malformed JSON and HTTP, wrong fields,
oversize bodies, slow and vanishing clients) must be answered 4xx, or closed, never 5xx. Keep fewer clients than the
server's --queue, so that 429 is a fault too. With --pid the server's resident
memory is read every ten seconds: its growth over the second half is printed, and more than --most-growth MiB is a leak.
Exits 0 if all held. Needs Python's standard library alone.
"""
import argparse
import http.client
import json
import random
import socket
import sys
import threading
import time


class Soak:
    def __init__(self, arguments):
        self.arguments = arguments
        self.end = time.monotonic() + 60 * arguments.minutes
        self.lock = threading.Lock()
        self.counts = {}
        self.faults = []
        self.texts = {}
        self.has_chat = self.call("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}],
                                                           "max_tokens": 1})[0] == 200

    def fault(self, what):
        with self.lock:
            self.faults.append(what)
            if len(self.faults) <= 20:
                print("fault:", what, file=sys.stderr)

    def count(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1

    def connection(self, seconds=120):
        return http.client.HTTPConnection(self.arguments.host, self.arguments.port, timeout=seconds)

    def call(self, path, body, raw=None):
        """Status and text of one POST."""
        client = self.connection()
        headers = {"Content-Type": "application/json"}
        if self.arguments.key:
            headers["Authorization"] = "Bearer " + self.arguments.key
        try:
            client.request("POST", path, raw if raw is not None else json.dumps(body), headers)
            answer = client.getresponse()
            return answer.status, answer.read().decode("utf-8", "strict")
        finally:
            client.close()

    def good(self, rng):
        prompt = "Once upon a time " + " ".join(rng.choice(["there", "was", "a", "girl", "dog"])
                                                for _ in range(rng.randrange(12)))
        body = {"max_tokens": rng.randrange(1, 24), "seed": rng.randrange(4),
                "temperature": rng.choice([0, 0.7, 1]), "stream": rng.random() < 0.4}
        kind = rng.random()
        if kind < 0.1:
            status, text = self.call("/v1/embeddings", {"input": [prompt, "x"]})
            if status != 200 or len(json.loads(text)["data"]) != 2:
                self.fault(f"embeddings: {status} {text[:200]}")
            self.count("embeddings")
            return
        chat = self.has_chat and kind < 0.5
        if chat:
            body["messages"] = [{"role": "user", "content": prompt}]
        else:
            body["prompt"] = prompt
        status, text = self.call("/v1/chat/completions" if chat else "/v1/completions", body)
        if status != 200:
            self.fault(f"good request: {status} {text[:200]}")
            return
        if body["stream"]:
            written = self.streamed(text)
        else:
            choice = json.loads(text)["choices"][0]
            written = choice["message"]["content"] if chat else choice["text"]
        key = json.dumps([chat, {k: v for k, v in body.items() if k != "stream"}], sort_keys=True)
        with self.lock:
            before = self.texts.setdefault(key, written)
            if len(self.texts) > 50000:
                self.texts.clear()
        if before != written:
            self.fault(f"one request, two answers: {before!r} and {written!r} to {key}")
        self.count("good")

    def streamed(self, text):
        events = [event for event in text.split("\n\n") if event and not event.startswith(":")]
        if not events or events[-1] != "data: [DONE]":
            self.fault(f"a stream without its end: {text[-200:]!r}")
            return None
        written = ""
        for event in events[:-1]:
            data = json.loads(event[len("data: "):])
            if "error" in data:
                self.fault(f"an error in a stream: {data}")
            for choice in data.get("choices", []):
                written += choice.get("text") or choice.get("delta", {}).get("content") or ""
        return written

    def bad(self, rng):
        body = json.dumps({"prompt": "abc", "max_tokens": 3, "temperature": 0.5})
        cut = rng.randrange(len(body))
        bodies = [body[:cut], body[:cut] + chr(rng.randrange(32, 126)) * 3 + body[cut:], "", "[]", "{}",
                  '{"prompt": 3}', '{"prompt": "x", "n": 99}', '{"prompt": "x", "temperature": "hot"}',
                  '{"prompt": "x", "model": "no such model"}', '{"messages": []}', "[" * 5000, "\u00e9" * 100]
        raw = rng.choice(bodies).encode() if rng.random() > 0.02 else b" " * self.arguments.oversize
        path = rng.choice(["/v1/completions", "/v1/chat/completions", "/v1/embeddings", "/nowhere"])
        try:
            status, text = self.call(path, None, raw=raw)
        except ConnectionError:
            if len(raw) < self.arguments.oversize:
                raise
            status, text = 413, '{"error": {"message": "closed while it was being sent"}}'
        if status >= 500:
            self.fault(f"bad request: {status} {text[:200]}")
        elif status >= 400 and "message" not in json.loads(text)["error"]:
            self.fault(f"an error without a message: {text[:200]}")
        self.count("bad")

    def rude(self, rng):
        """Bytes that are no HTTP, requests that stop half-way, clients that leave during their answer."""
        body = json.dumps({"prompt": "abc", "max_tokens": 200, "stream": rng.random() < 0.5})
        request = ("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                   f"Content-Length: {len(body)}\r\n\r\n{body}").encode()
        if rng.random() < 0.5:
            request = bytes(b if rng.random() > 0.02 else rng.randrange(256) for b in request)
        with socket.create_connection((self.arguments.host, self.arguments.port), timeout=10) as client:
            client.sendall(request[:rng.randrange(1, len(request) + 1)])
            time.sleep(rng.random() * (0.2 if rng.random() < 0.95 else 3))
            if rng.random() < 0.3:
                client.settimeout(0.2)
                try:
                    client.recv(100)
                except OSError:
                    pass
        self.count("rude")

    def client(self, number):
        rng = random.Random(self.arguments.seed * 1000 + number)
        while time.monotonic() < self.end:
            try:
                rng.choices([self.good, self.bad, self.rude], [0.7, 0.2, 0.1])[0](rng)
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.fault(f"{type(error).__name__}: {error}")

    def memory(self):
        with open(f"/proc/{self.arguments.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096 / 2**20

    def run(self):
        threads = [threading.Thread(target=self.client, args=(i,)) for i in range(self.arguments.clients)]
        for thread in threads:
            thread.start()
        samples = []
        while time.monotonic() < self.end:
            time.sleep(min(10, max(0.1, self.end - time.monotonic())))
            if self.arguments.pid:
                samples.append(self.memory())
        for thread in threads:
            thread.join()
        if len(samples) > 3:
            middle, last = samples[len(samples) // 2], samples[-1]
            print(f"resident memory: {samples[0]:.0f} MiB at first, {middle:.0f} half-way, {last:.0f} at last")
            if last - middle > self.arguments.most_growth:
                self.fault(f"memory grew by {last - middle:.1f} MiB over the second half")
        client = self.connection()
        client.request("GET", "/health")
        if client.getresponse().status != 200:
            self.fault("the server is not healthy at the end")
        print("requests:", ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items())))
        print(f"{len(self.faults)} faults")
        return 1 if self.faults else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--key", default="")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--oversize", type=int, default=(4 << 20) + 1, help="bytes of a body above the server's --max-body")
    parser.add_argument("--pid", type=int, help="of the server, to watch its memory")
    parser.add_argument("--most-growth", type=float, default=16, help="MiB over the second half")
    sys.exit(Soak(parser.parse_args()).run())


if __name__ == "__main__":
    main()
