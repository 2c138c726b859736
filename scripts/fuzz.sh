#!/usr/bin/env bash
# Builds the parsers under libFuzzer with clang 16 and runs each for a while from its seeds in tests/fuzz/seeds.
#   scripts/fuzz.sh [SECONDS] [TARGET...]     60 seconds for each target if not said; all targets
# JOBS sets the number of compilers (default: the number of cores). What was learnt stays in build/fuzz/corpus; an input
# that crashes, hangs or takes much memory stays in build/fuzz/found. Exits 77, with a line, where there is no clang++-16.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
shift || true
if ! command -v clang++-16 >/dev/null; then
  echo "skipped fuzz/libfuzzer: needs clang++-16 (scripts/setup.sh --slow installs it)"
  exit 77
fi
requests=(request recipe)
targets=("$@")
[ ${#targets[@]} -gt 0 ] || for folder in tests/fuzz/seeds/*/; do targets+=("$(basename "$folder")"); done

unity=()
[ -f build/fuzz/CMakeCache.txt ] || unity=(-DINGOT_UNITY=ON)
cmake --preset fuzz "${unity[@]}" >/dev/null
ninja -C build/fuzz -j "${JOBS:-$(nproc)}" --quiet fuzz_files fuzz_requests

status=0
for target in "${targets[@]}"; do
  program=fuzz_files
  [[ " ${requests[*]} " != *" $target "* ]] || program=fuzz_requests
  corpus=build/fuzz/corpus/$target log=build/fuzz/$target.log
  mkdir -p "$corpus" build/fuzz/found
  # Hanging is a finding too, and so is memory for what only a number in the input says is there.
  if INGOT_FUZZ=$target ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=0 \
    "build/fuzz/tests/fuzz/$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=256 \
    -max_len=16384 -print_final_stats=1 -artifact_prefix="build/fuzz/found/$target-" "$corpus" "tests/fuzz/seeds/$target" \
    >"$log" 2>&1; then
    echo "fuzz $target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs in $seconds s," \
      "$(grep -o 'cov: [0-9]*' "$log" | tail -n 1)"
  else
    echo "fuzz $target: FAILED, see $log"
    grep -m 3 -E '^SUMMARY|^==[0-9]*==ERROR|^Test unit written' "$log" || tail -n 5 "$log"
    status=1
  fi
done
exit $status
