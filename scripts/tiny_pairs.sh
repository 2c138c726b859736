#!/usr/bin/env bash
# Writes preference pairs for recipes/tiny-dpo.toml: questions of scripts/tiny_chats.sh, whose chosen answers are brief and whose
# rejected ones are not.
#   scripts/tiny_pairs.sh > build/demo/pairs.jsonl
set -euo pipefail
cd "$(dirname "$0")"

./tiny_chats.sh | awk '
{
  question = $0; sub(/.*"role": "user", "content": "/, "", question); sub(/"}, \{"role": "assistant".*/, "", question)
  answer = $0; sub(/.*"role": "assistant", "content": "/, "", answer); sub(/"}\]}$/, "", answer)
  printf "{\"prompt\": [{\"role\": \"user\", \"content\": \"%s\"}], ", question
  printf "\"chosen\": [{\"role\": \"assistant\", \"content\": \"%s\"}], ", answer
  printf "\"rejected\": [{\"role\": \"assistant\", \"content\": \"Behold, I say unto thee: %s\"}]}\n", answer
}'
