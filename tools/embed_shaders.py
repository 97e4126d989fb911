#!/usr/bin/env python3
"""Compiles the shaders, checks them and embeds them as C.

Each src/gpu/shaders/*.comp names its variants in its head:

    //! kernel softmax_f32        OM_EXACT=0
    //! kernel softmax_f32_exact  OM_EXACT=1
    //! kernel softmax_subgroup   target=vulkan1.2 WIDTH=32   (words in brackets are a remark)

A variant without `target` is portable: SPIR-V 1.3, and the rules of docs/shaders.md are checked.
The result is om_shaders.h (an enum and om_shader_get) and om_shaders.c (words, and what they ask
of a device, read from the words themselves). Names are taken out of the embedded words.

The words are embedded compressed (pack_spirv.py), in one block all kernels whose files' names begin
with the same word: they are many, and most of their code is the same.

Code is not optimised here: functions stay functions, so a chain's operations stand in a kernel
once; drivers inline and specialise by themselves, and names survive for the other languages.
Where a kernel has a chain, the places are written down at which om_gpu_trim.c cuts off what a
chain does not use: drivers inline before they specialise, and would take their time for it.

Kernels for Hopper in src/gpu/sm90/*.c stand in the same enum (embed_ptx.py); a file is a block.
"""
import argparse
import concurrent.futures
import functools
import glob
import hashlib
import json
import os
import re
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
import embed_ptx
import pack_spirv

PORTABLE_TARGET = "vulkan1.1"
MAX_BINDINGS = 8           # WebGPU promises 8 storage buffers a stage
MAX_INVOCATIONS = 256      # and 256 invocations, 16 KiB of shared memory
MAX_SHARED_BYTES = 16384
MAX_PARAMS_BYTES = 128     # Vulkan promises 128 bytes of push constants
MAX_CONSTANTS = 32

# SPIR-V numbers, as the specification's "Unified" edition has them.
OP_NAME_OPCODES = {2, 3, 4, 5, 6, 7, 8, 317, 330}  # source, names, lines, strings, processed
OP_ENTRY_POINT, OP_EXECUTION_MODE, OP_CAPABILITY, OP_EXECUTION_MODE_ID = 15, 16, 17, 331
CAPABILITY_SHADER, CAPABILITY_STORAGE_16BIT = 1, 4433
OP_TYPE_BOOL, OP_TYPE_INT, OP_TYPE_FLOAT, OP_TYPE_VECTOR, OP_TYPE_MATRIX = 20, 21, 22, 23, 24
OP_TYPE_ARRAY, OP_TYPE_RUNTIME_ARRAY, OP_TYPE_STRUCT, OP_TYPE_POINTER = 28, 29, 30, 32
OP_CONSTANT, OP_SPEC_CONSTANT_FIRST, OP_SPEC_CONSTANT_LAST, OP_SPEC_CONSTANT_OP = 43, 48, 51, 52
OP_VARIABLE, OP_DECORATE, OP_MEMBER_DECORATE = 59, 71, 72
OP_NAME, OP_FUNCTION, OP_BRANCH_CONDITIONAL, OP_SWITCH = 5, 54, 250, 251
CHAIN_ITEMS = 8            # of common/chain.glsl
DEC_SPEC_ID, DEC_BUFFER_BLOCK, DEC_BUILTIN, DEC_NON_WRITABLE, DEC_NON_READABLE = 1, 3, 11, 24, 25
DEC_BINDING, DEC_SET, DEC_OFFSET, DEC_ARRAY_STRIDE = 33, 34, 35, 6
STORAGE_UNIFORM, STORAGE_WORKGROUP, STORAGE_PUSH_CONSTANT, STORAGE_BUFFER = 2, 4, 9, 12
MODE_LOCAL_SIZE, MODE_LOCAL_SIZE_ID = 17, 38


class ShaderError(Exception):
    """A sentence for whoever wrote the shader."""


class Variant:
    def __init__(self, path, line, name, defines, target):
        self.path, self.line, self.name = path, line, name
        self.defines, self.target = defines, target
        self.words = []

    code_kind = "OM_HAL_SPIRV"

    @property
    def is_portable(self):
        return self.target == PORTABLE_TARGET

    @property
    def is_built(self):
        return True

    @property
    def has_chain(self):
        return chain_places(self) is not None

    def fail(self, text):
        raise ShaderError(f"{self.path}:{self.line}: kernel {self.name}: {text}")

    is_words = True

    @property
    def block_name(self):
        return os.path.basename(self.path).split(".")[0].split("_")[0]

    @functools.cache
    def code(self):
        """The bytes that a driver gets."""
        return as_bytes(stripped(self.words))

    @staticmethod
    def walked(code, is_back):
        """The bytes as they are compressed, or (is_back) those of a driver again."""
        return as_bytes(pack_spirv.walk(list(struct.unpack(f"<{len(code) // 4}I", code)), is_back))


class PtxVariant(Variant):
    """A kernel in C for Hopper; text "" where no compiler makes it."""
    code_kind = "OM_HAL_PTX"

    def __init__(self, path, line, name, keys, defines):
        super().__init__(path, line, name, defines, "sm_90a")
        self.keys, self.text, self.facts = keys, "", embed_ptx.facts_of(keys)

    @property
    def is_built(self):
        return self.text != ""

    @property
    def has_chain(self):
        return self.keys["chain"] == "1"

    is_words = False

    @property
    def block_name(self):
        return os.path.basename(self.path).split(".")[0]

    def code(self):
        return self.text.encode("ascii")

    @staticmethod
    def walked(code, is_back):
        return pack_spirv.walk_text(code.decode("ascii"), is_back).encode("ascii")


class Block:
    """Kernels that are compressed together; those of small files come first, and are sooner read."""

    def __init__(self, variants):
        files = {}
        for v in variants:
            files.setdefault(v.path, []).append(v)
        in_order = sorted(files.values(), key=lambda of_file: sum(len(v.code()) for v in of_file))
        self.name, self.is_words = variants[0].block_name, variants[0].is_words
        self.data = b""
        for v in [v for of_file in in_order for v in of_file]:
            v.offset = len(self.data)
            self.data += v.stored

    def compressed(self):
        packed = pack_spirv.compress(self.data, self.is_words)
        assert pack_spirv.decompress(packed, self.is_words) == self.data
        return packed


def as_bytes(words):
    return struct.pack(f"<{len(words)}I", *words)


def head_lines(path):
    """(number, name, words) of each kernel line."""
    lines = []
    with open(path, encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            match = re.match(r"//!\s*kernel\s+(\S+)\s*([^(]*)", text)
            if not match:
                continue
            if not re.fullmatch(r"[a-z][a-z0-9_]*", match.group(1)):
                raise ShaderError(f"{path}:{number}: '{match.group(1)}' is not a kernel's name.")
            lines.append((number, match.group(1), match.group(2).split()))
    if not lines:
        raise ShaderError(f"{path}:1: there is no '//! kernel' line.")
    return lines


def read_ptx_variants(path):
    variants = []
    for number, name, words in head_lines(path):
        keys, defines, reason = embed_ptx.read_head(words)
        if reason:
            raise ShaderError(f"{path}:{number}: kernel {name}: {reason}")
        variants.append(PtxVariant(path, number, name, keys, defines))
    return variants


def read_variants(path):
    variants = []
    for number, name, words in head_lines(path):
        defines, target = [], PORTABLE_TARGET
        for word in words:
            if "=" not in word:
                raise ShaderError(f"{path}:{number}: '{word}' is not NAME=VALUE.")
            if word.startswith("target="):
                target = word.split("=", 1)[1]
            else:
                defines.append(word)
        variants.append(Variant(path, number, name, defines, target))
    return variants


def files_of(path, folders, found):
    """The file and all it includes, read once each."""
    if path in found:
        return
    with open(path, "rb") as file:
        found[path] = file.read()
    for name in re.findall(rb'^\s*#\s*include\s+"([^"]+)"', found[path], re.M):
        for folder in [os.path.dirname(path)] + folders:
            candidate = os.path.join(folder, name.decode())
            if os.path.exists(candidate):
                files_of(os.path.normpath(candidate), folders, found)
                break


def tool_version(tool):
    return subprocess.run([tool, "--version"], capture_output=True, check=True).stdout


def run_tool(variant, command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        variant.fail(f"{os.path.basename(command[0])} says:\n{result.stdout}{result.stderr}")


def cache_path(variant, defines, folders, versions, cache, ending):
    """A name that differs where anything does that the code is made of."""
    files = {}
    files_of(variant.path, folders, files)
    digest = hashlib.sha256(versions)
    digest.update(repr((variant.name, defines, variant.target)).encode())
    for path in sorted(files):
        digest.update(path.encode() + b"\0" + files[path] + b"\0")
    return os.path.join(cache, f"{variant.name}.{digest.hexdigest()[:24]}.{ending}")


def compile_ptx_variant(variant, args, folders, versions, cache):
    if not args.clang:
        return
    with open(embed_ptx.__file__, "rb") as file:
        versions += file.read()
    keys = sorted(variant.keys.items())
    variant.cache_file = cache_path(variant, (keys, variant.defines), folders, versions, cache, "ptx")
    if not os.path.exists(variant.cache_file):
        made, reason = embed_ptx.compile_ptx(args.clang, variant.path, variant.keys, variant.defines,
                                             variant.name, folders)
        if reason:
            variant.fail(reason)
        with open(variant.cache_file + ".new", "w", encoding="ascii") as file:
            json.dump(made, file)
        os.replace(variant.cache_file + ".new", variant.cache_file)
    with open(variant.cache_file, encoding="ascii") as file:
        variant.text, variant.facts = json.load(file)


def compile_variant(variant, args, folders, versions, cache):
    spirv = cache_path(variant, variant.defines + args.define, folders, versions, cache, "spv")
    if not os.path.exists(spirv):
        unchecked = spirv + ".new"
        includes = [f"-I{folder}" for folder in folders]
        run_tool(variant, [args.glslc, f"--target-env={variant.target}", "-fshader-stage=comp",
                           "-O0", "-Werror", *includes,
                           *[f"-D{d}" for d in variant.defines + args.define],
                           variant.path, "-o", unchecked])
        run_tool(variant, [args.spirv_val, "--target-env", variant.target, unchecked])
        os.replace(unchecked, spirv)
    with open(spirv, "rb") as file:
        data = file.read()
    variant.words = list(struct.unpack(f"<{len(data) // 4}I", data))
    variant.cache_file = spirv
    variant.facts = reflect(variant)


def instructions(words):
    at = 5
    while at < len(words):
        count, opcode = words[at] >> 16, words[at] & 0xFFFF
        yield opcode, words[at + 1:at + count], words[at:at + count]
        at += count


class Module:
    """What reflection needs of a SPIR-V module, by id."""

    def __init__(self, words):
        self.types, self.constants, self.variables = {}, {}, []
        self.decorations, self.member_decorations = {}, {}
        self.local_size, self.has_local_size_id = None, False
        self.narrow_types, self.spec_ops, self.capabilities = [], 0, []
        spec_constants = []
        for opcode, o, _ in instructions(words):
            if opcode == OP_CAPABILITY:
                self.capabilities.append(o[0])
            elif opcode == OP_EXECUTION_MODE and o[1] == MODE_LOCAL_SIZE:
                self.local_size = tuple(o[2:5])
            elif opcode == OP_EXECUTION_MODE_ID and o[1] == MODE_LOCAL_SIZE_ID:
                self.has_local_size_id = True
            elif opcode in (OP_TYPE_INT, OP_TYPE_FLOAT):
                self.types[o[0]] = (opcode, o[1:])
                if o[1] != 32 and (opcode, o[1]) != (OP_TYPE_FLOAT, 16):
                    self.narrow_types.append(o[1])
            elif OP_TYPE_BOOL <= opcode <= OP_TYPE_POINTER:
                self.types[o[0]] = (opcode, o[1:])
            elif opcode == OP_CONSTANT:
                self.constants[o[1]] = o[2]
            elif OP_SPEC_CONSTANT_FIRST <= opcode <= OP_SPEC_CONSTANT_LAST:
                spec_constants.append(o[1])
                if opcode == 50:
                    self.constants[o[1]] = o[2]
            elif opcode == OP_SPEC_CONSTANT_OP:
                self.spec_ops += 1
            elif opcode == OP_VARIABLE:
                self.variables.append((o[1], o[0], o[2]))
            elif opcode == OP_DECORATE:
                self.decorations.setdefault(o[0], {})[o[1]] = o[2:]
            elif opcode == OP_MEMBER_DECORATE:
                self.member_decorations.setdefault(o[0], {}).setdefault(o[1], {})[o[2]] = o[3:]
        self.spec_ids = sorted(self.decorations[i][DEC_SPEC_ID][0] for i in spec_constants
                               if DEC_SPEC_ID in self.decorations.get(i, {}))
        self.has_sized_by_constant = any(
            opcode == OP_TYPE_ARRAY and o[1] in spec_constants
            for opcode, o in self.types.values())
        self.has_workgroup_id = any(
            DEC_BUILTIN in d and d[DEC_BUILTIN][0] == 25 and i in spec_constants
            for i, d in self.decorations.items())

    def bytes_of(self, type_id):
        opcode, o = self.types[type_id]
        if opcode == OP_TYPE_BOOL:
            return 4
        if opcode in (OP_TYPE_INT, OP_TYPE_FLOAT):
            return o[0] // 8
        if opcode in (OP_TYPE_VECTOR, OP_TYPE_MATRIX):
            return self.bytes_of(o[0]) * o[1]
        if opcode == OP_TYPE_ARRAY:
            return self.bytes_of(o[0]) * self.constants.get(o[1], 0)
        if opcode == OP_TYPE_STRUCT:
            offsets = self.member_decorations.get(type_id, {})
            end = total = 0
            for index, member in enumerate(o):
                size = self.bytes_of(member)
                total += size
                offset = offsets.get(index, {}).get(DEC_OFFSET, [0])[0]
                end = max(end, offset + size)
            return end if any(DEC_OFFSET in d for d in offsets.values()) else total
        return 0

    def holds_halves(self, struct_id):
        """True for a buffer of float16 elements, or of vectors of them."""
        opcode, o = self.types[self.types[struct_id][1][-1]]
        while opcode in (OP_TYPE_RUNTIME_ARRAY, OP_TYPE_VECTOR):
            opcode, o = self.types[o[0]]
        return opcode == OP_TYPE_FLOAT and o[0] == 16

    def is_read_only(self, variable, struct_id):
        if DEC_NON_WRITABLE in self.decorations.get(variable, {}):
            return True
        members = self.types[struct_id][1]
        marks = self.member_decorations.get(struct_id, {})
        return all(DEC_NON_WRITABLE in marks.get(i, {}) for i in range(len(members)))


def reflect(variant):
    module = Module(variant.words)
    bindings, write_mask, half_mask, params_bytes, shared_bytes = [], 0, 0, 0, 0
    for variable, pointer, storage in module.variables:
        pointee = module.types[pointer][1][1]
        decorations = module.decorations.get(variable, {})
        if storage == STORAGE_BUFFER:
            if decorations.get(DEC_SET, [0])[0] != 0:
                variant.fail("a storage buffer is not in set 0.")
            binding = decorations[DEC_BINDING][0]
            if binding not in bindings:  # else another view of it
                bindings.append(binding)
            if not module.is_read_only(variable, pointee):
                write_mask |= 1 << binding
            if module.holds_halves(pointee):
                half_mask |= 1 << binding
        elif storage in (STORAGE_PUSH_CONSTANT, STORAGE_UNIFORM):
            params_bytes = module.bytes_of(pointee)
        elif storage == STORAGE_WORKGROUP:
            shared_bytes += module.bytes_of(pointee)
    if sorted(bindings) != list(range(len(bindings))):
        variant.fail(f"its bindings {sorted(bindings)} do not count from 0 without gaps.")
    if module.spec_ids != list(range(len(module.spec_ids))):
        variant.fail(f"its constants' ids {module.spec_ids} do not count from 0 without gaps.")
    if len(bindings) > MAX_BINDINGS:
        variant.fail(f"it has {len(bindings)} bindings; {MAX_BINDINGS} is the most.")
    if len(module.spec_ids) > MAX_CONSTANTS:
        variant.fail(f"it has {len(module.spec_ids)} constants; {MAX_CONSTANTS} is the most.")
    if params_bytes > MAX_PARAMS_BYTES:
        variant.fail(f"its parameters take {params_bytes} bytes; {MAX_PARAMS_BYTES} is the most.")
    if module.local_size is None or module.has_local_size_id or module.has_workgroup_id:
        variant.fail("its workgroup size is not fixed by #define (it would become 1 in WGSL).")
    if variant.is_portable:
        check_portable(variant, module, shared_bytes)
    return {"bindings": len(bindings), "write_mask": write_mask, "half_mask": half_mask,
            "params": params_bytes, "shared": shared_bytes,
            "size": module.local_size, "constants": len(module.spec_ids)}


def check_portable(variant, module, shared_bytes):
    x, y, z = module.local_size
    if x * y * z > MAX_INVOCATIONS:
        variant.fail(f"its workgroup has {x * y * z} invocations; portable is {MAX_INVOCATIONS}.")
    if shared_bytes > MAX_SHARED_BYTES:
        variant.fail(f"it shares {shared_bytes} bytes; portable is {MAX_SHARED_BYTES}.")
    if module.narrow_types:
        variant.fail(f"it uses {sorted(set(module.narrow_types))}-bit types; portable is 32.")
    others = set(module.capabilities) - {CAPABILITY_SHADER, CAPABILITY_STORAGE_16BIT}
    if others:
        variant.fail(f"it asks for the capabilities {sorted(others)} (a float16 may be loaded, "
                     "stored and converted, nothing else).")
    if module.has_sized_by_constant:
        variant.fail("an array's size is a specialization constant.")
    if module.spec_ops:
        variant.fail("an expression is made of specialization constants alone; "
                     "write `uint v = SPEC; if (v != 0u)`.")


def stripped(words):
    out = list(words[:5])
    for opcode, _, whole in instructions(words):
        if opcode not in OP_NAME_OPCODES:
            out += whole
    return out


def chain_places(variant):
    """Words, after stripping, of the chain's switch over operations and of the branch around each
    item; None where the kernel has no chain."""
    names = {}
    for opcode, o, _ in instructions(variant.words):
        if opcode == OP_NAME:
            text = struct.pack(f"<{len(o) - 1}I", *o[1:]).split(b"\0")[0].decode()
            names[o[0]] = text.split("(")[0]
    switches, branches, function, at = [], [], "", 5
    for opcode, o, whole in instructions(stripped(variant.words)):
        if opcode == OP_FUNCTION:
            function = names.get(o[1], "")
        elif opcode == OP_SWITCH and function == "chain_operate":
            switches.append(at)
        elif opcode == OP_BRANCH_CONDITIONAL and function == "chain_apply_broadcast":
            branches.append(at)
        at += len(whole)
    if not switches and not branches:
        return None
    if len(switches) != 1 or len(branches) != 2 * CHAIN_ITEMS:
        variant.fail("its chain is not the one that this tool knows (common/chain.glsl).")
    return switches[0], branches[::2]


def without_write_only(words):
    """WGSL has no write-only storage buffers: the decoration is left out on the way there."""
    out = list(words[:5])
    for opcode, o, whole in instructions(words):
        is_mark = (opcode == OP_DECORATE and o[1] == DEC_NON_READABLE
                   or opcode == OP_MEMBER_DECORATE and o[2] == DEC_NON_READABLE)
        if not is_mark:
            out += whole
    return out


def write_if_changed(path, text):
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    except FileNotFoundError:
        pass
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def header_text(variants):
    names = "".join(f"  OM_SHADER_{v.name.upper()},\n" for v in variants)
    return ("/* Generated by tools/embed_shaders.py: the kernels of this build. */\n"
            "#ifndef OM_SHADERS_H\n#define OM_SHADERS_H\n\n#include \"gpu/hal/om_hal.h\"\n\n"
            f"typedef enum om_shader {{\n{names}  OM_SHADER_COUNT\n}} om_shader;\n\n"
            "/* The kernel's code and what it asks of a device. Static. */\n"
            "const om_hal_shader *om_shader_get(om_shader shader);\n\n"
            "bool om_shader_has_chain(om_shader shader);\n\n"
            "/* Where a chain stands in the code, in words from its beginning. */\n"
            "typedef struct om_shader_chain {\n"
            "  uint32_t operations;      /* the switch over operations */\n"
            f"  uint32_t items[{CHAIN_ITEMS}];        /* the branch around each item */\n"
            "} om_shader_chain;\n\n"
            "/* NULL: the kernel has no chain. Static. */\n"
            "const om_shader_chain *om_shader_chain_get(om_shader shader);\n\n"
            "/* Whether this build has the code of the kernels for Hopper. */\n"
            "extern const bool om_has_sm90_kernels;\n\n"
            "/* Differs where one word of one kernel does. */\n"
            "extern const uint64_t om_shaders_hash;\n\n#endif\n")


def hash_of_all(variants):
    digest = hashlib.sha256()
    for v in variants:
        code = v.code()
        digest.update(f"{v.name} {len(code)}\n".encode() + code)
    return digest.hexdigest()[:16]


def walk_checked(variant):
    """The bytes that go into a block; None where they do not become the same code again."""
    stored = variant.walked(variant.code(), False)
    return stored if variant.walked(stored, True) == variant.code() else None


def kept_or_made(items, path_of, make, pool_of):
    """What a function makes of each item, in its order; what the cache has is not made again."""
    made = [None] * len(items)
    for i, item in enumerate(items):
        if os.path.exists(path_of(item)):
            with open(path_of(item), "rb") as file:
                made[i] = file.read()
    missing = [i for i, data in enumerate(made) if data is None]
    if not missing:
        return made
    with pool_of() as pool:
        for i, data in zip(missing, pool.map(make, [items[i] for i in missing])):
            made[i] = data
            if data is not None:
                with open(path_of(items[i]) + ".new", "wb") as file:
                    file.write(data)
                os.replace(path_of(items[i]) + ".new", path_of(items[i]))
    return made


def blocks_of(variants):
    names = {}
    for v in variants:
        names.setdefault(v.block_name, []).append(v)
    return [Block(of_name) for of_name in names.values()]


def make_blocks(variants, cache, jobs):
    """The blocks, compressed, and the files of the cache that hold what they are made of."""
    with open(pack_spirv.__file__, "rb") as file:
        form = file.read()
    ending = hashlib.sha256(form).hexdigest()[:12]
    path_of = lambda v: f"{v.cache_file}.{ending}"
    all_stored = kept_or_made(variants, path_of, walk_checked,
                              lambda: concurrent.futures.ProcessPoolExecutor(jobs))
    for v, stored in zip(variants, all_stored):
        if stored is None:
            v.fail("it does not become the same code again.")
        v.stored = stored
    blocks = blocks_of(variants)
    block_path = lambda b: os.path.join(cache, f"{b.name}.{hashlib.sha256(form + b.data).hexdigest()[:24]}.lzma")
    all_packed = kept_or_made(blocks, block_path, Block.compressed,
                              lambda: concurrent.futures.ThreadPoolExecutor(jobs)) # lzma lets other threads run
    for block, packed in zip(blocks, all_packed):
        block.packed = packed
    return blocks, {path_of(v) for v in variants} | {block_path(b) for b in blocks}


def shader_text(v):
    f = v.facts
    x, y, z = f["size"]
    place = (f"    .block = &{v.block_name}_block, .block_offset = {v.offset}, "
             f".block_bytes = {len(v.stored)},\n") if v.is_built else ""
    return (f"  [OM_SHADER_{v.name.upper()}] = {{\n"
            f"    .name = \"{v.name}\", .code_kind = {v.code_kind}, .code_bytes = {len(v.code())},\n"
            f"{place}"
            f"    .binding_count = {f['bindings']},\n"
            f"    .write_mask = {f['write_mask']}, .half_mask = {f['half_mask']},\n"
            f"    .params_bytes = {f['params']},\n"
            f"    .workgroup_size = {{{x}, {y}, {z}}}, .shared_bytes = {f['shared']},\n"
            f"    .constant_count = {f['constants']},\n"
            f"    .takes_turns = {f.get('turns', 0)}, .per_core = {f.get('per_core', 0)}}},\n")


def has_sm90(variants):
    return any(isinstance(v, PtxVariant) and v.is_built for v in variants)


def block_text(block):
    packed = block.packed
    lines = [",".join(str(b) for b in packed[i:i + 30]) for i in range(0, len(packed), 30)]
    body = ",\n  ".join(lines)
    return (f"static const uint8_t {block.name}_bytes[{len(packed)}] = {{\n  {body}}};\n\n"
            f"static const om_hal_block {block.name}_block = {{\n"
            f"  .packed = {block.name}_bytes, .packed_bytes = {len(packed)}, .bytes = {len(block.data)}}};\n\n")


def source_text(variants, blocks):
    parts = ["/* Generated by tools/embed_shaders.py. */\n#include \"om_shaders.h\"\n\n"]
    parts += [block_text(block) for block in blocks]
    parts.append("static const om_hal_shader shaders[OM_SHADER_COUNT] = {\n")
    parts += [shader_text(v) for v in variants]
    parts.append("};\n\nconst om_hal_shader *om_shader_get(om_shader shader) {\n"
                 "  return &shaders[shader];\n}\n\n"
                 "static const om_shader_chain chains[OM_SHADER_COUNT] = {\n"
                 "  [OM_SHADER_COUNT - 1] = {0},\n")
    for v in variants:
        places = chain_places(v) if v.words else None
        if places:
            items = ", ".join(str(p) for p in places[1])
            parts.append(f"  [OM_SHADER_{v.name.upper()}] = {{{places[0]}, {{{items}}}}},\n")
    in_ptx = "".join(f"    case OM_SHADER_{v.name.upper()}:\n" for v in variants
                     if v.has_chain and not v.words)
    parts.append("};\n\nbool om_shader_has_chain(om_shader shader) {\n  switch (shader) {\n"
                 + (in_ptx + "      return true;\n" if in_ptx else "") +
                 "    default:\n      return chains[shader].operations != 0;\n  }\n}\n\n"
                 "const om_shader_chain *om_shader_chain_get(om_shader shader) {\n"
                 "  return chains[shader].operations != 0 ? &chains[shader] : NULL;\n}\n\n"
                 f"const bool om_has_sm90_kernels = {str(has_sm90(variants)).lower()};\n\n"
                 f"const uint64_t om_shaders_hash = 0x{hash_of_all(variants)};\n")
    return "".join(parts)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--glslc", required=True)
    parser.add_argument("--spirv-val", required=True)
    parser.add_argument("--clang", help="makes PTX; left out: no kernels for Hopper")
    parser.add_argument("--source", required=True, help="the src folder")
    parser.add_argument("--out", required=True, help="where om_shaders.c and .h go")
    parser.add_argument("--define", action="append", default=[], help="NAME[=VALUE] for all kernels")
    parser.add_argument("--spirv-dir", help="write NAME.spv for each kernel, with its names, and "
                        "kernels.json with what reflection found, in place of om_shaders.c")
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args()


def embed(args):
    folders = [os.path.join(args.source, "gpu", "shaders"), args.source]
    paths = sorted(os.path.join(folders[0], f) for f in os.listdir(folders[0])
                   if f.endswith(".comp"))
    variants = [v for path in paths for v in read_variants(path)]
    variants += [v for path in sorted(glob.glob(os.path.join(args.source, "gpu", "sm90", "*.c")))
                 for v in read_ptx_variants(path)]
    names = set()
    for v in variants:
        if v.name in names:
            v.fail("the name is taken.")
        names.add(v.name)
    cache = os.path.join(args.out, "shader_cache")
    os.makedirs(cache, exist_ok=True)
    versions = tool_version(args.glslc) + tool_version(args.spirv_val)
    versions_ptx = tool_version(args.clang) if args.clang else b""
    errors = []

    def job(variant):
        try:
            if isinstance(variant, PtxVariant):
                compile_ptx_variant(variant, args, folders, versions_ptx, cache)
            else:
                compile_variant(variant, args, folders, versions, cache)
        except ShaderError as error:
            errors.append(str(error))

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(job, variants))
    if errors:
        raise ShaderError("\n".join(sorted(errors)))
    used = {v.cache_file for v in variants if v.is_built}
    write_if_changed(os.path.join(args.out, "om_shaders.h"), header_text(variants))
    if args.spirv_dir:
        write_spirv(args.spirv_dir, variants)
    else:
        blocks, kept = make_blocks([v for v in variants if v.is_built], cache, args.jobs)
        used |= kept
        write_if_changed(os.path.join(args.out, "om_shaders.c"), source_text(variants, blocks))
    for name in os.listdir(cache):
        if os.path.join(cache, name) not in used:
            os.remove(os.path.join(cache, name))


def write_spirv(folder, variants):
    os.makedirs(folder, exist_ok=True)
    for v in variants:
        if not v.words:
            continue
        with open(os.path.join(folder, v.name + ".spv"), "wb") as file:
            words = without_write_only(v.words)
            file.write(struct.pack(f"<{len(words)}I", *words))
    facts = [dict(v.facts, name=v.name, portable=v.is_portable, has_chain=v.has_chain)
             for v in variants]
    write_if_changed(os.path.join(folder, "kernels.json"), json.dumps(facts, indent=1))


if __name__ == "__main__":
    try:
        embed(parse_arguments())
    except ShaderError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
