#!/usr/bin/env bash
# Proves the tree: sets up, checks format, layers and the tests that documents name, builds, runs the fast tests, and
# the same under ASan and UBSan.
#   scripts/test.sh            everything a change must pass
#   scripts/test.sh --quick    without the sanitizer build
#   scripts/test.sh --slow     also the tests labelled slow, and uses of a frame after its return
# JOBS sets how many compilers and tests run at once (default: the number of cores). Ends with the reasons of skipped
# tests, a table of the stages, and the closing lines of each test run.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2

quick=no slow=no
for argument in "$@"; do
  case "$argument" in
    --quick) quick=yes ;;
    --slow) slow=yes ;;
    *) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
  esac
done
jobs=${JOBS:-$(nproc)}
table="" closing="" skipped="" failed=no

# stage NAME COMMAND...: runs it, notes the time and whether it passed, and returns its status.
stage() {
  local name=$1 start=$SECONDS status=0
  shift
  printf '\n=== %s\n' "$name"
  "$@" || status=$?
  [ $status -eq 0 ] || failed=yes
  table+=$(printf '%-24s %5d s   %s' "$name" $((SECONDS - start)) "$([ $status -eq 0 ] && echo ok || echo FAILED)")$'\n'
  return $status
}

# build PRESET TARGETS...: a new build tree compiles several sources at once (INGOT_UNITY), which is faster; one that
# is there stays as it is.
build() {
  local preset=$1 unity=()
  shift
  [ -f "build/$preset/CMakeCache.txt" ] || unity=(-DINGOT_UNITY=ON)
  cmake --preset "$preset" -DINGOT_TESTS=ON "${unity[@]}" && cmake --build "build/$preset" --parallel "$jobs" --target "$@"
}

# run_tests PRESET LABEL: what ctest says goes to the screen, and its last lines to the end of this run.
run_tests() {
  local log="build/$1/ctest-$2.log" status=0
  ctest --test-dir "build/$1" -L "^$2\$" --output-on-failure --no-tests=error --parallel "$jobs" 2>&1 | tee "$log" || status=1
  closing+=$'\n'"$1, $2:"$'\n'"$(sed -n '/^[0-9]*% tests passed/,$p' "$log" | sed '/^$/d')"$'\n'
  skipped+=$(sed -n 's/^skipped /  /p' "build/$1/Testing/Temporary/LastTest.log" 2>/dev/null)$'\n'
  return $status
}

# Looking for uses of a frame after its return takes as long as all the rest: only with --slow.
[ $slow = yes ] && returns=1 || returns=0
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:detect_stack_use_after_return=$returns:strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}

slow_too=() targets=(ingot fast_tests)
[ $slow = no ] || { slow_too=(--slow) && targets+=(slow_tests); }
stage setup scripts/setup.sh "${slow_too[@]}" || exit 1
stage format tools/format.sh
stage layers tools/check_layers.py
stage terms tools/check_terms.py
stage "layers' own tests" python3 tools/test_check_layers.py
if stage "build release" build release "${targets[@]}"; then  # what does not compile is not worth compiling twice
  stage "fast tests release" run_tests release fast
  [ $slow = no ] || stage "slow tests release" run_tests release slow
  [ $quick = yes ] || { stage "build asan" build asan ingot fast_tests && stage "fast tests asan" run_tests asan fast; }
fi

skipped=$(sort -u <<<"$skipped" | sed '/^$/d')
[ -z "$skipped" ] || printf '\nskipped tests:\n%s\n' "$skipped"
printf '\n%s' "$table"
printf '%s' "$closing"
[ $failed = no ]
