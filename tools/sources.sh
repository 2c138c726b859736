# shellcheck shell=bash
# Sourced by format.sh and tidy.sh: cpp_sources all|changed lists the C++ files of the tree, one a line.
# "changed" means against the commit in $BASE (default: HEAD), files not yet committed included.
cpp_sources() {
  case "$1" in
    changed) { git diff --name-only --diff-filter=d "${BASE:-HEAD}"; git ls-files --others --exclude-standard; } ;;
    all) git ls-files --cached --others --exclude-standard ;;
  esac | grep -E '^(ingot|tests|bench)/.*\.(h|cpp)$' | sort -u | while read -r file; do
    [ -f "$file" ] && printf '%s\n' "$file"
  done
}
