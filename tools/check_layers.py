#!/usr/bin/env python3
"""Checks the rules of the tree that no compiler checks; prints `file:line: rule: explanation`, exits 1 on any finding.

  layer        a file of ingot/ includes only its own folder and those tools/layers.txt allows it
  include      a quoted include is a path from the root that exists; outside libraries stand in <>
  wrapped      a library's header that a header of ours stands for is included by that one alone
  cycle        no two files include each other, directly or through others
  name         files below ingot/ are snake_case (x-inl.h: compiled once per instruction set), and none is called utils, common, helpers, misc or …_utils
  length       no source file is longer than 600 lines
  pragma_once  every header begins with #pragma once
  todo         no open task in a comment without the number of its issue, as in (#12)
  dead         no disabled test, no skip without its reason, no assertion that cannot fail, no #if 0
  namespace    no using-directive in a header
  machine      no path of someone's own machine

usage: check_layers.py [--root FOLDER]
"""
import argparse
import pathlib
import re
import subprocess
import sys

LONGEST = 600
SOURCE = {".h", ".cpp", ".cu", ".cuh", ".py", ".sh"}
HEADER = {".h", ".cuh"}
CPP = HEADER | {".cpp", ".cu"}
CODE_FOLDERS = ("ingot", "tests", "bench")
VAGUE = {"util", "utils", "common", "helper", "helpers", "misc"}

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
WRAPPED = {"<nlohmann/json.hpp>": "ingot/base/json_library.h"}
SNAKE_CASE = re.compile(r"[a-z0-9]+(_[a-z0-9]+)*(-inl)?\.[a-z]+")
OPEN_TASK = re.compile(r"\b(TO" r"DO|FIX" r"ME)\b(?!\s*\(#\d+\))")
MACHINE_PATH = re.compile(r"(?<![\w.$}/-])/(home|Users|root|work)/\w|[A-Z]:\\Users\\")
USING = re.compile(r"^\s*using\s+namespace\b")
DEAD = (
    (re.compile(r"\bDISABLED_\w"), "a disabled test: make it pass or remove it"),
    (re.compile(r"\bGTEST_SKIP\(\)\s*;"), "a skip without its reason: GTEST_SKIP() << reason"),
    (re.compile(r"\b(EXPECT|ASSERT)_TRUE\(\s*true\s*\)|\b(EXPECT|ASSERT)_FALSE\(\s*false\s*\)"), "cannot fail"),
    (re.compile(r"^[ \t]*#[ \t]*if[ \t]+0\b", re.M), "code that is never compiled: remove it"),
)


class Layers:
    """tools/layers.txt: per folder the set of folders it may include."""

    def __init__(self, text):
        self.allowed, self.errors = {}, []
        groups = {}
        for number, line in enumerate(text.splitlines(), 1):
            line = line.split("#")[0].strip()
            if not line:
                continue
            match = re.fullmatch(r"(\w+)\s*([=:])(.*)", line)
            if not match:
                self.errors.append((number, f"neither `group = folders` nor `folder: folders`: {line}"))
                continue
            name, kind, names = match.group(1), match.group(2), match.group(3).split()
            folders = set()
            for each in names:
                if each not in groups and each not in self.allowed:
                    self.errors.append((number, f"{name} names {each}, which no line above defines"))
                folders |= groups.get(each, {each})
            if name in self.allowed or name in groups:
                self.errors.append((number, f"{name} is defined twice"))
            (groups if kind == "=" else self.allowed)[name] = folders


class Checker:
    def __init__(self, root):
        self.root = root
        self.findings = []
        self.includes = {}  # file → [(line, included file)], both from the root

    def report(self, path, line, rule, explanation):
        self.findings.append((str(path), line, rule, explanation))

    def run(self):
        layers_file = "tools/layers.txt"
        self.layers = Layers((self.root / layers_file).read_text())
        for line, explanation in self.layers.errors:
            self.report(layers_file, line, "layer", explanation)
        for path in tracked_files(self.root):
            self.check_file(path)
        self.check_cycles()
        return sorted(set(self.findings))

    def check_file(self, path):
        try:
            text = (self.root / path).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            return  # binary data, or deleted but not yet committed
        lines = text.splitlines()
        for number, line in enumerate(lines, 1):
            if MACHINE_PATH.search(line):
                self.report(path, number, "machine", "a path of one machine: use a relative path or a variable")
        if path.suffix not in SOURCE or path.parts[:2] == ("tests", "oracle"):
            return
        self.check_name(path)
        if len(lines) > LONGEST:
            self.report(path, LONGEST + 1, "length", f"{len(lines)} lines, at most {LONGEST}: one concept a file")
        for number, line in enumerate(lines, 1):
            if OPEN_TASK.search(line):
                self.report(path, number, "todo", "an open task without an issue: do it, or name the issue as (#12)")
        if path.suffix in CPP and path.parts[0] in CODE_FOLDERS:
            self.check_cpp(path, text, lines)

    def check_name(self, path):
        for part in path.with_suffix("").parts:
            if part.split("_")[-1] in VAGUE:
                self.report(path, 1, "name", f"`{part}` says nothing: name what it holds")
        if path.parts[0] == "ingot" and not SNAKE_CASE.fullmatch(path.name):
            self.report(path, 1, "name", "file names are snake_case")

    def check_cpp(self, path, text, lines):
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            if match:
                self.check_include(path, number, match.group(1))
            for header, ours in WRAPPED.items():
                if line.startswith("#include") and header in line and str(path) != ours:
                    self.report(path, number, "wrapped", f'include "{ours}" instead of {header}')
            if path.suffix in HEADER and USING.match(line):
                self.report(path, number, "namespace", "a using-directive in a header reaches every file that includes it")
        for pattern, explanation in DEAD:
            for match in pattern.finditer(text):
                self.report(path, text.count("\n", 0, match.start()) + 1, "dead", explanation)
        # Highway compiles a file once per instruction set; a header that takes part guards itself per target.
        if path.suffix in HEADER and "HWY_TARGET_TOGGLE" not in text:
            code = [line for line in lines if line.strip() and not line.lstrip().startswith("//")]
            if not code or code[0].strip() != "#pragma once":
                self.report(path, 1, "pragma_once", "the first line of code in a header is #pragma once")

    def check_include(self, path, number, included):
        if not (self.root / included).is_file():
            self.report(path, number, "include", f'"{included}" is no path from the root; outside libraries stand in <>')
            return
        self.includes.setdefault(str(path), []).append((number, included))
        if path.parts[0] != "ingot" or len(path.parts) < 3:
            return
        if not included.startswith("ingot/"):
            self.report(path, number, "layer", f"ingot/ does not include {included.split('/')[0]}/")
            return
        here, there = path.parts[1], included.split("/")[1]
        if here not in self.layers.allowed:
            self.report(path, number, "layer", f"folder {here} is not in tools/layers.txt")
        elif there != here and there not in self.layers.allowed[here]:
            known = " ".join(f for f in self.layers.allowed if f in self.layers.allowed[here]) or "nothing"
            self.report(path, number, "layer", f"{here} may not include {there}; it may include: {known}")

    def check_cycles(self):
        """Depth-first over the includes without recursion; each back edge closes one cycle."""
        done = set()
        for start in sorted(self.includes):
            trail, pending = [], [(start, iter(self.includes[start]))]
            if start in done:
                continue
            trail.append(start)
            while pending:
                file, edges = pending[-1]
                for number, target in edges:
                    if target in trail:
                        loop = trail[trail.index(target):] + [target]
                        self.report(file, number, "cycle", " → ".join(loop))
                    elif target not in done and target in self.includes:
                        trail.append(target)
                        pending.append((target, iter(self.includes[target])))
                        break
                else:
                    done.add(file)
                    pending.pop()
                    trail.pop()


def tracked_files(root):
    """Files that are, or could be, committed; every file where the tree is no Git checkout."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, capture_output=True, check=True).stdout.decode().split("\0")
        return sorted({pathlib.PurePosixPath(name) for name in listed if name})
    except (OSError, subprocess.CalledProcessError):
        found = (file.relative_to(root) for file in root.rglob("*") if file.is_file())
        return sorted(pathlib.PurePosixPath(f) for f in found if f.parts[0] not in ("build", "runs", ".git"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent,
                        help="the tree to check (default: the one this file stands in)")
    findings = Checker(parser.parse_args().root).run()
    for path, line, rule, explanation in findings:
        print(f"{path}:{line}: {rule}: {explanation}")
    print(f"check_layers: {len(findings)} finding{'s' if len(findings) != 1 else ''}", file=sys.stderr)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
