#!/usr/bin/env bash
# Installs what building, testing and the demonstration need on Debian 12 and calls apt only when something is missing.
#   scripts/setup.sh           installs
#   scripts/setup.sh --slow    also what only the slow tests need
#   scripts/setup.sh --list    prints the names of the packages
# Runs as root or with sudo; says what to install where it can do neither. No harm in running it twice.
set -euo pipefail

packages() {
  sed -E 's/[[:space:]]*#.*//; /^$/d' <<'LIST'
g++                  # compiler, 12 or later; brings the C++ library and OpenMP
cmake                # build, 3.25 or later
ninja-build          # build
ccache               # repeated builds
pkg-config           # finds the libraries that have no CMake package
python3              # tools/check_layers.py
clang-format-16      # the one formatter
libdnnl-dev          # oneDNN: matrix products
ocl-icd-opencl-dev   # the CMake package of oneDNN asks for OpenCL even for the CPU
libhwy-dev           # Highway: SIMD with dispatch at run time
libeigen3-dev        # eigenvectors and roots of small matrices (Shampoo, SOAP)
libtomlplusplus-dev  # recipes
libcli11-dev         # command line
nlohmann-json3-dev   # JSON
libfmt-dev           # text formatting
libspdlog-dev        # logging
libxxhash-dev        # hashes of tensors in checkpoints
libpcre2-dev         # pre-tokenizer patterns
libicu-dev           # Unicode
libsentencepiece-dev # training of Unigram tokenizers
libsimdjson-dev      # rows of JSON at speed
zlib1g-dev           # data packed by gzip
libzstd-dev          # data packed by zstd
libsqlite3-dev       # store of runs
libcpp-httplib-dev   # ingot serve: HTTP
libgtest-dev         # tests
libgmock-dev         # tests: matchers
libprotobuf-dev      # tests: files for TensorBoard
librapidcheck-dev    # tests: properties over random inputs
bible-kjv            # the text that scripts/demo.sh trains on
LIST
}

slow_packages() {
  echo clang-16 libclang-rt-16-dev  # libFuzzer
}

wanted=$(packages)
case "${1:-}" in
  "") ;;
  --slow) wanted+=" $(slow_packages)" ;;
  --list)
    packages
    exit 0 ;;
  *)
    echo "usage: scripts/setup.sh [--slow|--list]" >&2
    exit 2 ;;
esac

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "setup: this is no Debian system: what the list in scripts/setup.sh names has to be installed by hand" >&2
  exit 0
fi

missing=()
for package in $wanted; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: everything is installed"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  # Without a terminal sudo could wait for a password for ever.
  if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
    as_root=(sudo)
  else
    echo "setup: missing packages and neither root nor sudo: ask for: apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
fi

install() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
}
echo "setup: installing ${missing[*]}"
# The first attempt uses the package lists as they are; a fresh or stale system needs new ones.
if ! install >/dev/null 2>&1; then
  "${as_root[@]}" apt-get update -q
  install
fi
echo "setup: done"
