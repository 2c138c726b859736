#!/usr/bin/env python3
"""Checks that every test which docs/terms.tsv and the other documents name is there.

  tools/check_terms.py

A test is named as `tests/FOLDER/FILE.cpp: Suite.Name`, or `Suite.*` for all of a suite. Prints a line for each one that
is missing and exits 1 if there is any.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAMED = re.compile(r"(tests/[\w/]+\.cpp): (\w+)\.(\w+|\*)")
DEFINED = re.compile(r"TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)")


def tests_of(path):
    return set(DEFINED.findall(path.read_text(encoding="utf-8"))) if path.is_file() else None


def main():
    findings = []
    for document in sorted([*ROOT.glob("docs/*"), *ROOT.glob("*.md")]):
        for file, suite, name in NAMED.findall(document.read_text(encoding="utf-8")):
            tests = tests_of(ROOT / file)
            if tests is None:
                findings.append(f"{document.relative_to(ROOT)}: there is no {file}")
            elif not any(suite == s and name in (n, "*") for s, n in tests):
                findings.append(f"{document.relative_to(ROOT)}: {file} has no test {suite}.{name}")
    print("\n".join(findings + [f"check_terms: {len(findings)} findings"]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
