"""Counts circles between the source files of each crate: files that use each other, directly or around.

    python3 xtask/circles.py [CHECKOUT]

A file uses another when a path in it (`use`, `crate::`, `super::`, `self::`) leads there, through re-exports as well. Tests, and
`pub use` itself, do not count. Between crates cargo allows none.
"""

import os
import re
import sys

TEST_MODULE = re.compile(r"#\[cfg\(test\)\]\s*(#\[[^\]]*\]\s*)*(pub\S*\s+)?mod\s+\w+")
MODULE = re.compile(
    r'(#\[path\s*=\s*"([^"]+)"\]\s*)?(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;'
)
USE = re.compile(r"\buse\s+([^;]+);")
PUBLIC_USE = re.compile(r"\bpub(?:\([^)]*\))?\s+use\s+([^;]+);")
PATH = re.compile(r"\b((?:crate|super|self)(?:::\w+)+)")


def read(path):
    """A file without its comments and texts."""
    text = open(path).read()
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return re.sub(r'"(?:\\.|[^"\\])*"', '""', text)


def modules(source):
    """The file of each module, by the module's path."""
    found = {}

    def walk(path, module, folder):
        found[module] = path
        for _, given, name in MODULE.findall(open(path).read()):
            file = os.path.join(os.path.dirname(path), given) if given else os.path.join(folder, name + ".rs")
            if not os.path.exists(file):
                file = os.path.join(folder, name, "mod.rs")
            inner = file[:-3] if given else os.path.join(folder, name)
            if "test" not in name and "test" not in os.path.basename(file) and os.path.exists(file):
                walk(file, module + (name,), inner)

    roots = [os.path.join(source, name) for name in ("lib.rs", "main.rs")]
    walk(next(filter(os.path.exists, roots)), (), source)
    return found


def expand(tree):
    """The paths of a `use`, each with the name it gives."""
    found = []

    def walk(text, prefix):
        depth, part, parts = 0, "", []
        for letter in text + ",":
            depth += {"{": 1, "}": -1}.get(letter, 0)
            if letter == "," and depth == 0:
                parts.append(part.strip())
                part = ""
            else:
                part += letter
        for part in filter(None, parts):
            if "{" in part:
                head, inner = part.split("{", 1)
                walk(inner.rsplit("}", 1)[0], prefix + [word for word in head.strip().split("::") if word])
            else:
                head, _, alias = part.partition(" as ")
                path = prefix + [word for word in head.strip().split("::") if word]
                path = path[:-1] if path[-1] == "self" else path
                if path:
                    found.append((path, alias.strip() or path[-1]))

    walk(tree.strip(), [])
    return found


class Crate:
    def __init__(self, source):
        self.modules = modules(source)
        self.exported = {}
        for module, path in self.modules.items():
            for tree in PUBLIC_USE.findall(read(path)):
                for words, name in expand(tree):
                    place = self.descend(module, words)
                    if place and len(place[1]) == 1:
                        self.exported[module, name] = place[0], place[1][0]

    def descend(self, module, words):
        """The module that a path leads to, and what is left of the path."""
        if words[0] == "crate":
            at, rest = (), words[1:]
        elif words[0] in ("self", "super"):
            at, rest = module, words
            while rest and rest[0] in ("self", "super"):
                at, rest = (at[:-1] if rest[0] == "super" else at), rest[1:]
        elif module + (words[0],) in self.modules:
            at, rest = module, words
        else:
            return None
        while rest and at + (rest[0],) in self.modules:
            at, rest = at + (rest[0],), rest[1:]
        return at, rest

    def used_by(self, module):
        text = read(self.modules[module])
        tests = TEST_MODULE.search(text)
        text = PUBLIC_USE.sub("", text[: tests.start()] if tests else text)
        paths = [words for tree in USE.findall(text) for words, _ in expand(tree)]
        paths += [path.split("::") for path in PATH.findall(USE.sub("", text))]
        for words in paths:
            place = self.descend(module, words)
            for _ in range(8):
                if not place or not place[1] or (place[0], place[1][0]) not in self.exported:
                    break
                at, name = self.exported[place[0], place[1][0]]
                place = self.descend(at, ["self", name] + place[1][1:])
            if place and place[0] != module and place[0] in self.modules:
                yield place[0]

    def circles(self):
        """Strongly connected files (Tarjan)."""
        uses = {module: set(self.used_by(module)) for module in self.modules}
        index, low, stack, found = {}, {}, [], []

        def visit(module):
            index[module] = low[module] = len(index)
            stack.append(module)
            for other in uses[module]:
                if other not in index:
                    visit(other)
                    low[module] = min(low[module], low[other])
                elif other in stack:
                    low[module] = min(low[module], index[other])
            if low[module] == index[module]:
                circle = stack[stack.index(module) :]
                del stack[stack.index(module) :]
                if len(circle) > 1:
                    found.append(circle)

        for module in self.modules:
            if module not in index:
                visit(module)
        return found


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    folders = ["profiler-agent"]
    for place in ("crates", "."):
        inside = os.path.join(root, place)
        if os.path.isdir(inside):
            folders += [os.path.normpath(os.path.join(place, name)) for name in sorted(os.listdir(inside))]
    sizes = []
    for folder in dict.fromkeys(folders):
        source = os.path.join(root, folder, "src")
        is_crate = os.path.basename(folder).startswith("profiler-") or folder.startswith("crates")
        if not is_crate or not any(os.path.exists(os.path.join(source, name)) for name in ("lib.rs", "main.rs")):
            continue
        for circle in Crate(source).circles():
            sizes.append(len(circle))
            print(folder, *sorted("::".join(module) or "lib" for module in circle))
    print(f"{len(sizes)} circles between {sum(sizes)} files")


if __name__ == "__main__":
    sys.setrecursionlimit(10_000)
    main()
