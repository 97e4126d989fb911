"""Makes the code of kernels small. They are many and alike: what is alike is made the same bytes, then a block of
kernels is compressed as one. om_hal_code.c does the reverse.

SPIR-V (walk): ids become distances, so that the same code is the same words wherever its ids begin: an instruction's
result from the result before it, its operands from its own result (where it has none, from the result before). An
operand that names what stands before the functions (a type, a constant, a variable), or is below 16 and so mostly
a number, stays as it is; the lowest bit tells, 1. Types and constants themselves stay as they are.

PTX (walk_text): numbers of registers become distances from the first register of the line before that has one of the
same kind, which is what that line writes.

A block (compress) is raw LZMA2, as XZ Utils and Python's lzma have it. Its dictionary is memory that unpacking takes
beside the block's own: 2 MB cost 5 percent of the largest block, of 10 MB.
"""
import lzma
import re

PLAIN = {10, 14, 15, 16, 17, 71, 72}   # extensions, memory model, entry points, decorations
NO_RESULT = {56, 62, 63, 64, 224, 225, 228, 246, 247, 249, 250, 251, 252, 253, 254, 255}
RESULT_FIRST = {11, *range(19, 40), 248}          # imports, types, labels
CONSTANTS = {41, 42, 43, 44, 48, 49, 50, 51}
HEADER = 5
FUNCTION = 54
SMALL = 16
MASK = 0xFFFFFFFF
REGISTER = re.compile(r"%(r|rd|rs|f|fd|p)(-?\d+)")
DICTIONARY_BYTES = 1 << 21 # as om_hal_code.c has it


def walk(words, is_back):
    """The words with distances for ids, or (is_back) with ids for distances."""
    out, last, at = list(words[:HEADER]), 0, HEADER
    is_kept = set(range(SMALL))
    is_in_function = False
    while at < len(words):
        count, opcode = words[at] >> 16, words[at] & 0xFFFF
        o = words[at:at + count]
        result = None
        if opcode in RESULT_FIRST and count > 1:
            result = 1
        elif opcode not in PLAIN and opcode not in NO_RESULT and count > 2:
            result = 2
        made = list(o)
        is_in_function = is_in_function or opcode == FUNCTION
        if result is not None:
            made[result] = (last + o[result] if is_back else o[result] - last) & MASK
            last = made[result] if is_back else o[result]
            if not is_in_function:
                is_kept.add(last)
        if opcode not in PLAIN and opcode not in RESULT_FIRST and opcode not in CONSTANTS:
            first = 3 if result is not None else 1
            if is_back:
                made[first:] = [x >> 1 if x & 1 else last - half(x) for x in o[first:]]
            else:
                made[first:] = [x << 1 & MASK | 1 if x in is_kept else last - x << 1 & MASK for x in o[first:]]
        out += made
        at += count
    return out


def half(word):
    """Of an even word with a sign."""
    return (word if word <= MASK >> 1 else word - MASK - 1) // 2


def walk_text(text, is_back):
    """The text with distances for registers, or (is_back) with registers for distances."""
    last, lines = {}, []
    for line in text.split("\n"):
        is_first = True

        def turn(match):
            nonlocal is_first
            kind, number = match[1], int(match[2])
            before = last.get(kind, 0)
            made = number + before if is_back else number - before
            if is_first:
                last[kind] = made if is_back else number
            is_first = False
            return f"%{kind}{made}"

        lines.append(REGISTER.sub(turn, line))
    return "\n".join(lines)


def filters(is_words):
    """Words repeat at multiples of 4 bytes, letters anywhere."""
    places = {"lc": 0, "lp": 2, "pb": 2} if is_words else {"lc": 3, "lp": 0, "pb": 0}
    return [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": DICTIONARY_BYTES, **places}]


def compress(data, is_words):
    return lzma.compress(data, format=lzma.FORMAT_RAW, filters=filters(is_words))


def decompress(data, is_words):
    return lzma.decompress(data, format=lzma.FORMAT_RAW, filters=filters(is_words))
