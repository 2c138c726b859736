#!/usr/bin/env python3
"""Divides source files into groups that can be compiled as one: prints `GROUP FILE` for each.

  tools/unity_groups.py [--lines N] FILE.cpp...

Files are compiled several at once where only the time of a whole build counts (INGOT_UNITY in CMakeLists.txt): reading
the same headers again and again is two thirds of it. Names that are local to a file must then not meet another
file's of the same name, so no two files of a group share one, and all open the same namespace. This relies on the format
that tools/format.sh enforces: what stands in a namespace begins at the first column. A group ends at N lines (default
2500). Files that define a macro, take a name from another namespace of the project (it may hide one that a neighbour
sees), or are compiled once for each instruction set stay alone: they have no group and are not printed.
"""
import argparse
import pathlib
import re

OPENS, CLOSES = re.compile(r"namespace \{"), re.compile(r"\}  // namespace$")
TYPE = re.compile(r"(?:template <.*> )?(?:struct|class|enum class|enum|union) (\w+)")
ALIAS = re.compile(r"(?:using|namespace) (\w+) = ([^;]*)|using ((?:\w*::)+)(\w+);")
NAMESPACE = re.compile(r"^namespace ([\w:]+) \{$", re.MULTILINE)
FUNCTION = re.compile(r"([\w~]+)\(")
VALUE = re.compile(r"(\w+)(?:\[[^\]]*\])?(?: =|\{|;)")
ALONE = re.compile(r"^#\s*define |HWY_TARGET_INCLUDE|^using (?!::testing|testing|std|kernels|nlohmann)\w+(?:::\w+)+;", re.MULTILINE)


def local_names(text):
    """What a file defines in its unnamed namespaces; an alias counts with what it stands for."""
    inside = False
    for line in text.splitlines():
        if OPENS.match(line):
            inside = True
        elif CLOSES.match(line):
            inside = False
        elif inside and line and line[0] not in " }#/" and not line.startswith(("TEST", "static_assert")):
            alias = ALIAS.match(line)
            found = TYPE.match(line) or FUNCTION.search(line) or VALUE.search(line)
            if alias and alias.group(1):
                yield alias.group(1), alias.group(2)
            elif alias:
                yield alias.group(4), alias.group(3)
            elif found:
                yield found.group(1), ""


class Group:
    def __init__(self, namespace):
        self.namespace, self.meanings, self.lines = namespace, {}, 0

    def takes(self, namespace, names, lines, most):
        """A name may be in two files only as an alias of the same thing."""
        clash = any(self.meanings.get(name, meaning) != meaning or (not meaning and name in self.meanings)
                    for name, meaning in names)
        return not clash and namespace == self.namespace and self.lines + lines <= most

    def add(self, names, lines):
        self.meanings.update(names)
        self.lines += lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=2500)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    groups = []
    for file in arguments.files:
        text = file.read_text(encoding="utf-8")
        if ALONE.search(text):
            continue
        names, lines = list(local_names(text)), text.count("\n")
        namespace = NAMESPACE.findall(text)[:1]
        for index, group in enumerate(groups):
            if group.takes(namespace, names, lines, max(arguments.lines, lines)):
                break
        else:
            index, group = len(groups), Group(namespace)
            groups.append(group)
        group.add(names, lines)
        print(index, file)


if __name__ == "__main__":
    main()
