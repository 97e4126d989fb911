"""The kernels in C for Hopper (src/gpu/sm90/*.c), as embed_shaders.py embeds them: compiled to PTX text by clang.

A variant is a line of the file's head:

    //! kernel matmul_sm90_half  bindings=r16,r16,w16,r16,r16 params=36 threads=384 shared=98304 chain=1 TILE=128

    bindings   in their order: r is read, w is written; 16: the elements are float16 in memory
    params     bytes of its own parameter block
    threads    of a workgroup
    shared     bytes of dynamic shared memory (none: 0)
    blocks     workgroups that a core holds at least, for the registers they may take (none: as it comes)
    constants  of its own (none: 0)
    chain      1: elementwise operations may be fused into it: the chain's block follows its own, and its items are
               constants behind those
    turns      1: it may be launched without a barrier (sm90.h, "Turns"); its struct has an sm90_turn at its end
    A_NAME     a definition; OM_EXACT=1: the kernel is an exact one, whose additions and multiplications round each

Its function is OM_KERNEL. Its only parameter is a struct: the bindings' addresses, the parameter block, the
constants.

Without a clang that makes PTX the kernels are named all the same, with no code; om_has_sm90_kernels is false then.
"""
import os
import re
import subprocess

# clang's C does not know that a barrier is one for all threads, and would put copies of it into branches that
# threads take apart: -fconvergent-functions forbids it.
OPTIONS = ["--target=nvptx64-nvidia-cuda", "-Xclang", "-target-cpu", "-Xclang", "sm_90a",
           "-Xclang", "-target-feature", "-Xclang", "+ptx83", "-std=gnu11", "-O3", "-S", "-x", "c",
           "-fno-math-errno", "-fconvergent-functions", "-fdenormal-fp-math=preserve-sign",
           "-ffreestanding", "-Wall", "-Wextra", "-Werror"]
FAST_OPTIONS = ["-ffp-contract=fast", "-mllvm", "-nvptx-prec-divf32=1", "-mllvm", "-nvptx-prec-sqrtf32=0"]
EXACT_OPTIONS = ["-ffp-contract=off", "-mllvm", "-nvptx-prec-divf32=2", "-mllvm", "-nvptx-prec-sqrtf32=1"]
# What an exact kernel may not have: fused, approximated, or left to the assembler to fuse. fma.rn.f32, which keeps
# subnormals, clang does not make here: it is a quotient's remainder (sm90_math.h).
INEXACT = re.compile(r"\b(?:fma|mad)\.(?!rn\.f32)\S*f32|\b(?:add|sub|mul)\.(?!rn\.ftz\.)\S*f32|"
                     r"\b(?:div|sqrt|rcp)\.(?!rn\.ftz\.)\S*f32|\w+\.approx\S*")
MAX_SHARED_BYTES = 232448  # a workgroup's on Hopper
MAX_THREADS = 1024
MAX_PARAMS_BYTES = 128
CHAIN_ITEMS, CHAIN_BYTES = 8, 40
TURN_BYTES = 24  # sm90_turn, at a multiple of 8
DEFAULTS = {"shared": "0", "blocks": "0", "chain": "0", "constants": "0", "turns": "0"}
NEEDED = ("bindings", "params", "threads")
KEYS = {*NEEDED, *DEFAULTS}


def read_head(words):
    """The keys and the definitions of a head line, or a reason."""
    keys, defines = dict(DEFAULTS), []
    for word in words:
        name, separator, value = word.partition("=")
        if not separator:
            return None, None, f"'{word}' is not NAME=VALUE."
        if name in KEYS:
            keys[name] = value
        elif name.isupper():
            defines.append(word)
        else:
            return None, None, f"'{name}' is neither a key ({', '.join(sorted(KEYS))}) nor a definition."
    for name in NEEDED:
        if name not in keys:
            return None, None, f"'{name}=' is missing."
    if not all(re.fullmatch(r"[rw](16)?", b) for b in keys["bindings"].split(",")):
        return None, None, "a binding is r, w, r16 or w16."
    if not all(keys[name].isdigit() for name in KEYS - {"bindings"}):
        return None, None, "a number is wanted."
    return keys, defines, None


def facts_of(keys):
    bindings = keys["bindings"].split(",")
    return {"bindings": len(bindings),
            "write_mask": sum(1 << i for i, b in enumerate(bindings) if b.startswith("w")),
            "half_mask": sum(1 << i for i, b in enumerate(bindings) if b.endswith("16")),
            "params": int(keys["params"]) + CHAIN_BYTES * int(keys["chain"]),
            "shared": int(keys["shared"]),
            "constants": int(keys["constants"]) + CHAIN_ITEMS * int(keys["chain"]),
            "turns": int(keys["turns"]),
            "per_core": int(keys["blocks"]),
            "size": (int(keys["threads"]), 1, 1)}


def is_exact(defines):
    return "OM_EXACT=1" in defines


def run_clang(clang, source, defines, include_folders):
    """The text and None, or None and what the compiler says."""
    result = subprocess.run([clang, *OPTIONS, *(EXACT_OPTIONS if is_exact(defines) else FAST_OPTIONS),
                             *[f"-I{folder}" for folder in include_folders],
                             *[f"-D{d}" for d in defines], source, "-o", "-"],
                            capture_output=True, text=True)
    if result.returncode != 0:
        return None, f"{os.path.basename(clang)} says:\n{result.stderr}"
    return without_remarks(result.stdout), None


def without_remarks(text):
    lines = [re.sub(r"\s*//.*", "", line).strip() for line in text.split("\n")]
    return "\n".join(re.sub(r"\s+", " ", line) for line in lines if line) + "\n"


def finish(text, keys, name):
    """The text with the size of its workgroups, and what it asks of a caller; or a reason."""
    entries = re.findall(r"\.entry (\w+)\(", text)
    if entries != [name]:
        return None, f"its functions are {entries}; one is wanted, OM_KERNEL."
    limits = f".reqntid {keys['threads']}, 1, 1\n"
    if int(keys["blocks"]) > 0:
        limits += f".minnctapersm {keys['blocks']}\n"
    text, count = re.subn(r"(\.entry \w+\([^)]*\)\n)", lambda m: m.group(1) + limits, text)
    parameter = re.findall(r"\.param \.align 8 \.b8 " + name + r"_param_\d+\[(\d+)\]", text)
    if count != 1 or len(parameter) != 1:
        return None, "its only parameter is a struct, addresses first."
    facts = facts_of(keys)
    parts = 8 * facts["bindings"], facts["params"], 4 * facts["constants"]
    if int(parameter[0]) != (sum(parts) + 7) // 8 * 8 + TURN_BYTES * facts["turns"]:
        return None, (f"its parameter has {parameter[0]} bytes; the head says {parts[0]} of addresses, {parts[1]} of "
                      f"parameters and {parts[2]} of constants; turns={keys['turns']}.")
    if facts["params"] > MAX_PARAMS_BYTES or facts["params"] % 4 != 0:
        return None, f"its parameters take {facts['params']} bytes; {MAX_PARAMS_BYTES} is the most."
    if facts["shared"] > MAX_SHARED_BYTES or facts["size"][0] > MAX_THREADS:
        return None, f"at most {MAX_SHARED_BYTES} bytes are shared, and {MAX_THREADS} threads a workgroup."
    return (text, facts), None


def compile_ptx(clang, source, keys, defines, name, include_folders):
    """(text, facts) and None, or None and a reason."""
    own = [f"OM_KERNEL={name}", f"OM_THREADS={keys['threads']}", f"OM_SHARED_BYTES={keys['shared']}"]
    text, reason = run_clang(clang, source, own + defines, include_folders)
    inexact = INEXACT.search(text) if text and is_exact(defines) else None
    if inexact: reason = f"'{inexact.group()}' is not exact."
    return (None, reason) if reason else finish(text, keys, name)
