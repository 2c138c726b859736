#!/usr/bin/env bash
# Builds the libFuzzer targets with clang 16 and runs each for a while from its seeds.
#   scripts/fuzz.sh [SECONDS]     60 for each target if not said
# JOBS sets the number of compilers (default: the number of cores). Exits 77, with a line, where there is no clang++-16 or no libomp of it.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
if ! command -v clang++-16 >/dev/null; then
  echo "skipped fuzz/libfuzzer: needs clang++-16 (Debian: clang-16 and libomp-16-dev)"
  exit 77
fi
targets=(gguf safetensors config tokenizer template)
mkdir -p build/fuzz
if ! cmake --preset fuzz >build/fuzz/configure.log 2>&1; then
  echo "skipped fuzz/libfuzzer: clang++-16 lacks a library, most likely libomp-16-dev; see build/fuzz/configure.log"
  exit 77
fi
ninja -C build/fuzz -j "${JOBS:-$(nproc)}" "${targets[@]/#/fuzz_}"
tests/fuzz/make_seeds.py build/fuzz/seeds
for target in "${targets[@]}"; do
  mkdir -p "build/fuzz/corpus/$target"
  echo "fuzz: $target for $seconds s"
  # An input that hangs, or takes more memory than a parser may, is a finding too.
  OMP_NUM_THREADS=1 ASAN_OPTIONS=detect_leaks=1 "build/fuzz/tests/fuzz/fuzz_$target" -max_total_time="$seconds" \
    -timeout=10 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 -artifact_prefix="build/fuzz/$target-" \
    "build/fuzz/corpus/$target" "build/fuzz/seeds/$target" 2>&1 | tail -n 12
done
