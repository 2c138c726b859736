#!/usr/bin/env python3
"""Divides source files into groups that can be compiled as one: prints `GROUP FILE` for each.

  tools/unity_groups.py [--lines N] FILE.cpp...

Files are compiled several at once where only the time of a whole build counts (INGOT_UNITY in cmake/unity.cmake):
reading the same headers again and again is two thirds of it. What each file means must stay the same. So no two files
of a group know a name that is local to one of them: if a file defines `read` in its unnamed namespace, no other file
of its group, nor a header that the other includes, contains that word where a name could be looked up (not as a member,
in a text or a comment); but two may give a name to the same thing (`using Json = …`). All files of a group open the
same namespace. This relies on the format that tools/format.sh enforces: what stands in a namespace begins at the first
column. A group ends at N lines (default 2500). Files that define a macro, take a name out of a namespace of the project
(headers may use it for something else), or are compiled once for each instruction set, stay alone: they have no group
and are not printed.
"""
import argparse
import functools
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
OPENS, CLOSES = re.compile(r"namespace \{"), re.compile(r"\}  // namespace$")
TYPE = re.compile(r"(?:template <.*> )?(?:struct|class|enum class|enum|union) (\w+)")
ALIAS = re.compile(r"(?:using|namespace) (\w+) = ([^;]*)|using ((?:\w*::)+)(\w+);")
NAMESPACE = re.compile(r"^namespace ([\w:]+) \{$", re.MULTILINE)
FUNCTION = re.compile(r"([\w~]+)\(")
VALUE = re.compile(r"(\w+)(?:\[[^\]]*\])?(?: =|\{|;)")
INCLUDE = re.compile(r'^#include "(.+)"$', re.MULTILINE)
WORD = re.compile(r"[A-Za-z_]\w*")
# What no unqualified name is looked up for: comments, texts, members of objects, names of other libraries.
ELSEWHERE = re.compile(r'''(?<=[0-9a-f])'(?=[0-9a-f])|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'|//[^\n]*|/\*.*?\*/'''
                       r'''|(?:\.|->)\s*(?:template\s+)?[A-Za-z_]\w*|\b(?:std|hn|nlohmann|Eigen|CLI|fmt)(?:::\w+)+''', re.DOTALL)
ALONE = re.compile(r"^#\s*define |HWY_TARGET_INCLUDE", re.MULTILINE)
TAKEN = re.compile(r"^using (?!::testing|testing|std|kernels|nlohmann)\w+(?:::\w+)+;", re.MULTILINE)
NO_NAMES = ("TEST", "static_assert", "return", "using namespace")


def local_names(text):
    """What a file defines in its unnamed namespaces: name → what it stands for, where that is an alias."""
    names, inside = {}, False
    for line in text.splitlines():
        if OPENS.match(line):
            inside = True
        elif CLOSES.match(line):
            inside = False
        elif inside and line and line[0] not in " }#/" and not line.startswith(NO_NAMES):
            alias = ALIAS.match(line)
            found = TYPE.match(line) or FUNCTION.search(line) or VALUE.search(line)
            if alias and alias.group(1):
                names[alias.group(1)] = alias.group(2)
            elif alias:
                names[alias.group(4)] = alias.group(3)
            elif found:
                names[found.group(1)] = ""
    return names


def words_of(text):
    """The words of a source that may be looked up as names of a namespace."""
    return frozenset(WORD.findall(ELSEWHERE.sub(" ", text)))


@functools.cache
def words_of_header(path):
    file = ROOT / path
    return words_of(file.read_text(encoding="utf-8")) if file.is_file() else frozenset()


def stays_alone(text):
    """Whether a file is compiled by itself. What tests take out of a namespace is seen by the headers of tests alone."""
    return ALONE.search(text) or (TAKEN.search(text) and "\nnamespace ingot::testing {" not in text)


class Source:
    def __init__(self, text):
        self.names, self.lines = local_names(text), text.count("\n")
        self.namespace = NAMESPACE.findall(text)[:1]
        self.words = words_of(text).union(*map(words_of_header, INCLUDE.findall(text)))

    def hides_from(self, other):
        """Whether a local name of this file could mean something else in the other."""
        return any(name in other.words and (not meaning or other.names.get(name) != meaning)
                   for name, meaning in self.names.items())

    def goes_with(self, other):
        return self.namespace == other.namespace and not self.hides_from(other) and not other.hides_from(self)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=2500)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    sources = []
    for file in arguments.files:
        text = file.read_text(encoding="utf-8")
        if not stays_alone(text):
            sources.append((file, Source(text)))
    # Who goes with few others chooses first: that takes a fifth fewer groups.
    companions = {file: sum(source.goes_with(other) for _, other in sources) for file, source in sources}
    groups = []
    for file, source in sorted(sources, key=lambda each: companions[each[0]]):
        for index, group in enumerate(groups):
            fits = sum(member.lines for member in group) + source.lines <= arguments.lines
            if fits and all(source.goes_with(member) for member in group):
                break
        else:
            index = len(groups)
            groups.append([])
        groups[index].append(source)
        print(index, file)


if __name__ == "__main__":
    main()
