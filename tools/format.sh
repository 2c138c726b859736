#!/usr/bin/env bash
# Checks that every C++ file stands as clang-format-16 would write it.
#   tools/format.sh          lists the files that do not, and fails
#   tools/format.sh --fix    rewrites them
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/sources.sh

case "${1:-}" in
  --fix) cpp_sources all | xargs -r clang-format-16 -i ;;
  "")
    wrong=$(cpp_sources all | xargs -r clang-format-16 --dry-run 2>&1 | sed -nE 's/^([^ :]+):[0-9]+:.*/\1/p' | uniq)
    [ -z "$wrong" ] && exit 0
    sed 's/$/: not formatted/' <<<"$wrong"
    echo "format: run tools/format.sh --fix" >&2
    exit 1
    ;;
  *) echo "usage: tools/format.sh [--fix]" >&2; exit 2 ;;
esac
