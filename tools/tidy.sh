#!/usr/bin/env bash
# Runs clang-tidy-16 with the rules of .clang-tidy, in parallel.
#   tools/tidy.sh             over files changed since HEAD (or since the commit in $BASE)
#   tools/tidy.sh --all       over all
#   tools/tidy.sh FILE...     over these
# Reads the compile commands of $BUILD (default build/release); a header is checked through the files that include it.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/sources.sh

build=${BUILD:-build/release}
if [ ! -f "$build/compile_commands.json" ]; then
  echo "tidy: no $build/compile_commands.json: configure first (cmake --preset release), or set BUILD" >&2
  exit 2
fi

case "${1:-}" in
  --all) files=$(cpp_sources all) ;;
  "") files=$(cpp_sources changed) ;;
  -*) echo "usage: tools/tidy.sh [--all | FILE...]" >&2; exit 2 ;;
  *) files=$(printf '%s\n' "$@") ;;
esac
files=$(grep '\.cpp$' <<<"$files" || true)
if [ -z "$files" ]; then
  echo "tidy: no .cpp file to check"
  exit 0
fi
# run-clang-tidy takes regular expressions; each file is named by its whole path.
mapfile -t patterns < <(sed -E "s|^|$PWD/|; s|[.+]|\\\\&|g; s|\$|\$|" <<<"$files")
# Flags that only GCC knows are no finding; omp.h is GCC's, with an attribute clang 16 lacks the form of.
run-clang-tidy-16 -quiet -p "$build" -extra-arg=-Wno-unknown-warning-option -extra-arg=-Wno-error \
  -extra-arg="-D__malloc__(free)=" -extra-arg="-idirafter$(dirname "$(g++ -print-file-name=include/omp.h)")" "${patterns[@]}" 2>&1 |
  sed -E '/^clang-tidy-16 |^[0-9]+ warnings?( and [0-9]+ errors?)? generated|^$/d'
