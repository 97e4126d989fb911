#!/usr/bin/env python3
"""Embeds the kernels' WGSL as C: the web build's counterpart of the words that embed_shaders.py writes.

    embed_wgsl.py --spirv-dir FOLDER --wgsl-dir FOLDER --out om_shaders_wgsl.c

kernels.json and NAME.wgsl come from embed_shaders.py and tools/wgsl/translate.mjs. Most kernels are made
of the same functions, so the text is cut into pieces that are kept once: local names are made the same
wherever they stand, blanks go, and a kernel is a list of pieces. A piece may have a condition, by which
om_gpu_trim_wgsl.c leaves out what a chain does not use:

    an item of the chain        the statements of CHAIN_ITEM_n in chain_apply_broadcast
    a set of its operations     a case of the switch in chain_operate, and each function that is
                                called by such cases alone
"""
import argparse
import hashlib
import json
import os
import re
import sys

CHAIN_ITEMS = 8
KEYWORDS = set("""fn var let const override struct if else loop continuing break switch case default return
for while true false bitcast function private workgroup storage uniform read write read_write ptr array f32 i32 u32
bool f16 vec2 vec3 vec4 mat2x2 mat3x3 mat4x4 select discard continue fallthrough enable atomic""".split())
JOINING = {"--", "++", "&&", "||", "<<", ">>", ">=", "<=", "//", "/*", "==", "->"}  # apart, they mean something else
TOKEN = re.compile(r"[A-Za-z_][A-Za-z_0-9]*|0x[0-9a-fA-F]+[iu]?|(?:\d+\.?\d*(?:e[+-]?\d+)?|\.\d+)[fhiu]?|\s+|.", re.S)


class EmbedError(Exception):
    """A sentence about a text that is not what naga is known to write."""


def declarations(text):
    """The module's top-level declarations, in order."""
    parts, current, depth = [], [], 0
    for line in text.split("\n"):
        if not line.strip() and depth == 0:
            continue
        current.append(line)
        depth += line.count("{") - line.count("}")
        ends = depth == 0 and (line.rstrip().endswith(("}", ";")))
        if ends:
            parts.append("\n".join(current))
            current = []
    if current:
        raise EmbedError("a declaration does not end")
    return parts


def plain(name):
    """A function's name without the signature that SPIR-V carries in it."""
    return re.sub(r"_+", "_", re.sub(r"_u00[0-9a-f]{2}", "_", name)).rstrip("_")


def global_names(parts):
    """New names for the module's globals: functions by their own, buffers by their blocks'."""
    names = {}
    for part in parts:
        function = re.search(r"\bfn (\w+)", part)
        buffer = re.search(r"var<storage[^>]*> (\w+): (\w+);", part)
        if function:
            names[function.group(1)] = plain(function.group(1))
        elif buffer:
            names[buffer.group(1)] = "b" + buffer.group(2)
    if len(set(names.values())) != len(names):
        raise EmbedError("two globals have one name")
    return names


def is_function(part):
    return re.search(r"\bfn \w+\(", part) is not None


def local_names(part, taken):
    found = []
    head = part[:part.index("{")]
    found += re.findall(r"[(,]\s*(?:@builtin\(\w+\)\s*)?(\w+):", head)
    found += re.findall(r"\b(?:var|let) (\w+)", part)
    names = {}
    for name in found:
        if name not in names:
            number = len(names)
            short = "v" + ("abcdefghijklmnopqrstuvwxyz"[number] if number < 26 else str(number))
            while short in taken:
                short += "_"
            names[name] = short
    return names


def squeeze(part, names):
    """The text with new names and without the blanks that nobody needs."""
    out, previous, had_blank = [], "", False
    for token in TOKEN.findall(part):
        if token.isspace():
            had_blank = True
            continue
        word = names.get(token, token)
        if previous == ".":
            word = token  # a member
        is_word_after_word = re.match(r"\w", word) and re.search(r"\w$", previous)
        if is_word_after_word or had_blank and previous + word in JOINING:
            out.append(" ")
        out.append(word)
        previous, had_blank = word, False
    return "".join(out)


def blocks(text, start):
    """From `start`, which is behind an opening brace, the place behind its closing one."""
    depth = 1
    for at in range(start, len(text)):
        depth += (text[at] == "{") - (text[at] == "}")
        if depth == 0:
            return at + 1
    raise EmbedError("a brace is not closed")


def cut_operations(text):
    """chain_operate as [(text, operation or None)]."""
    switch = re.search(r"switch[^{]*\{", text)
    at, pieces = switch.end(), [(text[:switch.end()], None)]
    end = blocks(text, switch.end()) - 1
    while at < end:
        case = re.compile(r"case (\d+)u?:\{").match(text, at)
        default = re.compile(r"default:\{").match(text, at)
        if not case and not default:
            raise EmbedError(f"chain_operate has a case that is not known: {text[at:at + 40]}")
        stop = blocks(text, (case or default).end())
        pieces.append((text[at:stop], int(case.group(1)) if case else None))
        at = stop
    pieces.append((text[end:], None))
    return pieces


def cut_items(text):
    """chain_apply_broadcast as [(text, item or None)]."""
    pieces, at = [], 0
    for item in range(CHAIN_ITEMS):
        place = re.compile(r"\w+=CHAIN_ITEM_%d_;let \w+=\w+;if\([^{]*\{" % item).search(text, at)
        if not place:
            raise EmbedError(f"chain_apply_broadcast has no item {item}")
        pieces.append((text[at:place.start()], None))
        at = blocks(text, place.end())
        pieces.append((text[place.start():at], item))
    pieces.append((text[at:], None))
    return pieces


class Module:
    def __init__(self, name, text):
        self.name = name
        parts = declarations(text)
        names = global_names(parts)
        taken = set(names.values()) | KEYWORDS
        self.pieces = []  # (text, kind, argument); kind: None, "item", "op", "function"
        self.calls, self.ops = {}, {}
        for part in parts:
            own = dict(names)
            if is_function(part):
                own.update(local_names(part, taken))
            self.add(squeeze(part, own))
        self.resolve()

    def add(self, text):
        function = re.search(r"\bfn (\w+)\(", text)
        if not function:
            self.pieces.append((text, None, None))
            return
        name = function.group(1)
        called = set(re.findall(r"\b(\w+)\(", text)) - {name}
        if name.startswith("chain_operate"):
            called = set()
            for piece, operation in cut_operations(text):
                self.pieces.append((piece, "op" if operation is not None else "function",
                                    operation if operation is not None else name))
                calls = set(re.findall(r"\b(\w+)\(", piece)) - {name}
                if operation is None:
                    called |= calls
                else:
                    self.ops[operation] = calls
        elif name.startswith("chain_apply_broadcast"):
            for piece, item in cut_items(text):
                self.pieces.append((piece, "item" if item is not None else "function",
                                    item if item is not None else name))
        else:
            self.pieces.append((text, "function", name))
        self.calls[name] = called

    def reach(self, names):
        seen, todo = set(), list(names)
        while todo:
            name = todo.pop()
            if name in self.calls and name not in seen:
                seen.add(name)
                todo += self.calls[name]
        return seen

    def resolve(self):
        """The operations that a function is for; None: it is always there."""
        always = self.reach(["main"])
        reached = {operation: self.reach(calls) for operation, calls in self.ops.items()}
        self.needed = {}
        for name in self.calls:
            self.needed[name] = None if name in always else frozenset(
                operation for operation, names in reached.items() if name in names)

    def conditional(self):
        """[(text, condition)]: None, ("item", n) or a frozenset of operations."""
        for text, kind, argument in self.pieces:
            if kind is None:
                yield text, None
            elif kind == "item":
                yield text, ("item", argument)
            elif kind == "op":
                yield text, frozenset([argument])
            else:
                yield text, self.needed[argument]


def joined(pieces):
    """Neighbours of one condition become one piece."""
    out = []
    for text, condition in pieces:
        if isinstance(condition, frozenset) and not condition:
            continue  # nothing calls it
        out.append((text, condition))
    return out


def c_text(text):
    lines = []
    for at in range(0, len(text), 100):
        part = text[at:at + 100].replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        lines.append(f'    "{part}"')
    return "\n".join(lines)


def generate(kernels, modules):
    places, blob, size = {}, [], 0
    conditions, condition_numbers = [], {None: 0}
    pieces, ranges = [], {}

    def place(text):
        nonlocal size
        if text not in places:
            places[text] = size
            blob.append(text)
            size += len(text)
        return places[text]

    def number(condition):
        if condition not in condition_numbers:
            condition_numbers[condition] = len(condition_numbers)
            conditions.append(condition)
        return condition_numbers[condition]

    for module in modules:
        first = len(pieces)
        for text, condition in joined(module.conditional()):
            pieces.append((place(text), len(text), number(condition)))
        ranges[module.name] = (first, len(pieces) - first)

    out = ['/* Generated by tools/embed_wgsl.py. */\n#include "gpu/om_gpu_wgsl.h"\n#include "om_shaders.h"\n\n']
    out.append("const char om_wgsl_text[] =\n" + c_text("".join(blob)) + ";\n\n")
    out.append("const om_wgsl_condition om_wgsl_conditions[] = {\n  {0},\n")
    for condition in conditions:
        if isinstance(condition, tuple):
            out.append(f"  {{.is_item = true, .item = {condition[1]}}},\n")
        else:
            bits = [0] * 8
            for operation in condition:
                bits[operation // 32] |= 1 << operation % 32
            out.append("  {.operations = {" + ", ".join(f"0x{b:x}" for b in bits) + "}},\n")
    out.append("};\n\nstatic const om_wgsl_piece pieces[] = {\n")
    out += [f"  {{{a}, {b}, {c}}},\n" for a, b, c in pieces]
    out.append("};\n\nstatic const om_wgsl_module modules[OM_SHADER_COUNT] = {\n")
    for name, (first, count) in ranges.items():
        out.append(f"  [OM_SHADER_{name.upper()}] = {{&pieces[{first}], {count}}},\n")
    out.append("};\n\nconst om_wgsl_module *om_wgsl_module_get(om_shader shader) {\n  return &modules[shader];\n}\n\n"
               "static const om_hal_shader shaders[OM_SHADER_COUNT] = {\n")
    for k in kernels:
        x, y, z = k["size"]
        out.append(f"  [OM_SHADER_{k['name'].upper()}] = {{.name = \"{k['name']}\", .code_kind = OM_HAL_WGSL,\n"
                   f"    .binding_count = {k['bindings']}, .write_mask = {k['write_mask']},\n"
                   f"    .half_mask = {k['half_mask']},\n"
                   f"    .params_bytes = {k['params']}, .workgroup_size = {{{x}, {y}, {z}}},\n"
                   f"    .shared_bytes = {k['shared']}, .constant_count = {k['constants']}}},\n")
    out.append("};\n\nconst om_hal_shader *om_shader_get(om_shader shader) {\n  return &shaders[shader];\n}\n")
    chains = ", ".join(str(int(k["has_chain"])) for k in kernels)
    out.append(f"\nstatic const bool chains[] = {{{chains}}}; /* in the order of om_shader */\n\n"
               "bool om_shader_has_chain(om_shader shader) {\n  return chains[shader];\n}\n")
    digest = hashlib.sha256("".join(out).encode()).hexdigest()[:16]
    out.append(f"\nconst bool om_has_sm90_kernels = false;\n\nconst uint64_t om_shaders_hash = 0x{digest};\n")
    return "".join(out), size


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spirv-dir", required=True)
    parser.add_argument("--wgsl-dir", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--texts", help="a folder: also write each kernel's pieces as one NAME.wgsl there")
    args = parser.parse_args()
    with open(os.path.join(args.spirv_dir, "kernels.json"), encoding="utf-8") as file:
        kernels = json.load(file)
    modules = []
    for kernel in kernels:
        if not kernel["portable"]:
            continue
        with open(os.path.join(args.wgsl_dir, kernel["name"] + ".wgsl"), encoding="utf-8") as file:
            try:
                modules.append(Module(kernel["name"], file.read()))
            except EmbedError as error:
                sys.exit(f"kernel {kernel['name']}: {error}.")
    for module in modules if args.texts else []:
        with open(os.path.join(args.texts, module.name + ".wgsl"), "w", encoding="utf-8") as file:
            file.write("".join(text for text, _ in joined(module.conditional())))
    text, size = generate(kernels, modules)
    with open(args.out, "w", encoding="utf-8") as file:
        file.write(text)
    print(f"{len(modules)} kernels, {size} bytes of WGSL")


if __name__ == "__main__":
    main()
