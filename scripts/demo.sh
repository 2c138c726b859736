#!/usr/bin/env bash
# Trains a language model on real English in minutes and prints what it writes.
#   scripts/demo.sh                 the King James Bible, from Debian's package bible-kjv
#   scripts/demo.sh my.txt          any text of your own, 100 kB or more
#   scripts/demo.sh --again [TEXT]  forgets the run that is there and trains anew
# The run stands in runs/demo-<name>; a second call goes on where the first was stopped, or only writes a new sample.
set -euo pipefail

again=no
if [ "${1:-}" = --again ]; then again=yes; shift; fi
if [ $# -gt 1 ] || [[ "${1:-}" == -* ]]; then
  echo "usage: scripts/demo.sh [--again] [TEXT]" >&2
  exit 2
fi
text=${1:-}
if [ -n "$text" ]; then
  if [ ! -r "$text" ] || [ ! -f "$text" ]; then
    echo "demo: $text: not a readable file" >&2
    exit 3
  fi
  text=$(realpath "$text")
fi
cd "$(dirname "$0")/.."
say() { printf '\n=== %s\n' "$*"; }

say "1/4 setup"
scripts/setup.sh

say "2/4 build"
unity=()
[ -f build/release/CMakeCache.txt ] || unity=(-DINGOT_UNITY=ON)  # faster from nothing
cmake --preset release "${unity[@]}" >/dev/null
cmake --build build/release --target ingot --parallel "${JOBS:-$(nproc)}"
ingot=build/release/ingot

say "3/4 train"
mkdir -p build/demo
if [ -z "$text" ]; then
  text=build/demo/kjv.txt
  if [ ! -s "$text" ]; then
    bible -f gen1:1-rev22:21 >"$text.part"
    [ "$(wc -c <"$text.part")" -gt 4000000 ] || { echo "demo: bible -f gen1:1-rev22:21 gave too little text" >&2; exit 3; }
    mv "$text.part" "$text"
  fi
fi
name=$(basename "$text" | sed 's/\.[^.]*$//' | tr -cs 'A-Za-z0-9\n' - | tr '[:upper:]' '[:lower:]')
run=runs/demo-${name%-}
[ $again = no ] || rm -rf "$run"
echo "text: $text, $(wc -c <"$text") bytes; run: $run"
if [ -f "$run/model/model.safetensors" ]; then
  echo "already trained; scripts/demo.sh --again trains anew"
else
  resume=()
  [ ! -d "$run/checkpoints" ] || resume=(--resume)
  quoted=$(sed 's/[\\"]/\\&/g' <<<"$text")  # a TOML string
  "$ingot" train recipes/kjv.toml --set "data.files=[\"$quoted\"]" --run "$run" "${resume[@]}"
fi

say "4/4 what it writes"
prompt=$(grep -a -m 1 . "$text" | cut -b 1-40)
"$ingot" generate "$run/model" --prompt "$prompt" --tokens 400 --temperature 0.8 --seed 1
printf '\nmore: %s generate %s --prompt "..." --seed 2\n' "$ingot" "$run/model"
