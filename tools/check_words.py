#!/usr/bin/env python3
"""Words that must not stand in the library: it allocates in one file, never prints or ends the
process, keeps no writable globals, and promises nothing without an issue's number. A test that is
skipped says why."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ALLOCATOR = "src/base/om_alloc.c"
# Vulkan's loader and volk's entry points are one for the process, so their use takes one lock.
GLOBALS = {"src/gpu/hal/vulkan/om_vk_loader.c": "static pthread_rwlock_t"}
RULES = [
    ("allocates outside " + ALLOCATOR,
     re.compile(r"(?<![\w.>])(malloc|calloc|realloc|free|strdup|strndup|aligned_alloc|posix_memalign)\s*\(")),
    ("prints", re.compile(r"(?<![\w.>])(printf|fprintf|puts|putchar|fputs|perror|vprintf|vfprintf)\s*\(")),
    ("ends the process", re.compile(r"(?<![\w.>])(abort|exit|_Exit|quick_exit|raise)\s*\(")),
    ("uses a function without a bound", re.compile(r"(?<![\w.>])(strcpy|strcat|sprintf|gets)\s*\(")),
    ("a variable-length array on the stack", re.compile(r"(?<![\w.>])alloca\s*\(")),
    ("a writable global",
     re.compile(r"^static (?!const\b|inline\b|_Thread_local const\b)[\w ]+?[\w*]+(\[[^\]]*\])*( =[^(\n]*)?;",
                re.MULTILINE)),
]
TODO = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b(?!\(#\d+\))")
SKIP = re.compile(r"(?<!\w)skip\(\)")
SKIP_WITH_REASON = "om_test_skip.h"
PLACES = re.compile(r"/(work|home|root)/\w|\b(https?://)?registry\.[a-z]+\.(org|com)\b")


def without_comments(text):
    """The text with comments and strings blanked, lines kept."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def library_errors(path):
    text = without_comments(path.read_text(encoding="utf-8"))
    for what, rule in RULES:
        if "allocates" in what and path.relative_to(ROOT).as_posix() == ALLOCATOR:
            continue
        for match in rule.finditer(text):
            if match.group().startswith(GLOBALS.get(path.relative_to(ROOT).as_posix(), "\n")):
                continue
            yield text.count("\n", 0, match.start()) + 1, f"{what}: {match.group().strip()}"


def text_errors(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if TODO.search(line):
            yield number, "a TODO needs an issue: TODO(#12): text"
        if SKIP.search(line) and path.suffix in (".c", ".h") and path.name != SKIP_WITH_REASON:
            yield number, "a skipped case has a reason: OM_TEST_SKIP"
        if PLACES.search(line):
            yield number, "names a place of one machine or network"


def all_texts():
    suffixes = {".c", ".h", ".def", ".py", ".comp", ".glsl", ".md", ".cmake", ".txt", ".mjs", ".json", ""}
    for folder in ("include", "src", "tests", "tools", "examples", "bench", "scripts", "cmake", "docs"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix in suffixes and "corpus" not in path.parts:
                yield path
    yield from sorted(p for p in ROOT.glob("*.md"))


def main():
    failed = 0

    def tell(path, number, text):
        nonlocal failed
        failed += 1
        print(f"{path.relative_to(ROOT)}:{number}: {text}")

    for path in sorted((ROOT / "src").rglob("*.[ch]")):
        for number, text in library_errors(path):
            tell(path, number, text)
    for path in all_texts():
        if path == pathlib.Path(__file__).resolve():
            continue
        for number, text in text_errors(path):
            tell(path, number, text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
