# shellcheck shell=bash
# Sourced by format.sh and tidy.sh: cpp_sources all|changed lists the C++ files of the tree, one a line.
# "changed" means against the commit in $BASE (default: HEAD), files not yet committed included.
cpp_sources() {
  {
    if ! git rev-parse --git-dir >/dev/null 2>&1; then
      find ingot tests bench -type f  # an unpacked archive: all that is there
    elif [ "$1" = changed ]; then
      git diff --name-only --diff-filter=d "${BASE:-HEAD}"
      git ls-files --others --exclude-standard
    else
      git ls-files --cached --others --exclude-standard
    fi
  } | grep -E '^(ingot|tests|bench)/.*\.(h|cpp)$' | sort -u | while read -r file; do
    [ ! -f "$file" ] || printf '%s\n' "$file"
  done
}
