"""Packs the words of SPIR-V modules: kernels are many and alike. om_hal_code.c unpacks.

Two steps. First (walk), ids become distances, so that the same code is the same words wherever its ids
begin: an instruction's result from the result before it, its operands from its own result (where it
has none, from the result before). Types and literals stay as they are. Then (pack), runs of words that
stood before, in this module or in the base it is packed against, become references:

    count of literal words, the words; length of a copy, its distance back; and so on

until all words are there; all of them varints, words with their sign in the lowest bit. A length of
0 has no distance.
"""
MIN_COPY = 3       # words: a shorter copy takes no fewer bytes
CHAIN = 24         # places that are tried for a copy

PLAIN = {10, 14, 15, 16, 17, 71, 72}   # extensions, memory model, entry points, decorations
NO_RESULT = {56, 62, 63, 64, 224, 225, 228, 246, 247, 249, 250, 251, 252, 253, 254, 255}
RESULT_FIRST = {11, *range(19, 40), 248}          # imports, types, labels
CONSTANTS = {41, 42, 43, 44, 48, 49, 50, 51}
HEADER = 5
MASK = 0xFFFFFFFF


def walk(words, is_back):
    """The words with distances for ids, or (is_back) with ids for distances."""
    out, last, at = list(words[:HEADER]), 0, HEADER
    while at < len(words):
        count, opcode = words[at] >> 16, words[at] & 0xFFFF
        o = words[at:at + count]
        result = None
        if opcode in RESULT_FIRST and count > 1:
            result = 1
        elif opcode not in PLAIN and opcode not in NO_RESULT and count > 2:
            result = 2
        made = list(o)
        if result is not None:
            made[result] = (last + o[result] if is_back else o[result] - last) & MASK
            last = made[result] if is_back else o[result]
        if opcode not in PLAIN and opcode not in RESULT_FIRST and opcode not in CONSTANTS:
            first = 3 if result is not None else 1
            made[first:] = [(last - x) & MASK for x in o[first:]]
        out += made
        at += count
    return out


def varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return out


def signed(word):
    return (word << 1 if word < 0x80000000 else (~word << 1 | 1)) & MASK


def find_copy(words, at, places):
    best, distance = 0, 0
    for place in reversed(places[-CHAIN:]):
        length = 0
        while at + length < len(words) and words[place + length] == words[at + length]:
            length += 1
        if length > best:
            best, distance = length, at - place
    return best, distance


def pack(base, words):
    """The bytes of a module's words, as walk made them, with those of another before them."""
    start = len(base)
    all_words = base + words
    table, out, literals, at = {}, bytearray(), [], 0
    while at < len(all_words):
        key = tuple(all_words[at:at + MIN_COPY])
        length, distance = 0, 0
        if at >= start:
            length, distance = find_copy(all_words, at, table.get(key, []))
        if length >= MIN_COPY:
            out += varint(len(literals)) + b"".join(literals) + varint(length) + varint(distance)
            literals = []
        elif at >= start:
            literals.append(bytes(varint(signed(all_words[at]))))
        for i in range(at, at + (length if length >= MIN_COPY else 1)):
            table.setdefault(tuple(all_words[i:i + MIN_COPY]), []).append(i)
        at += length if length >= MIN_COPY else 1
    return bytes(out + varint(len(literals)) + b"".join(literals) + varint(0))


def unpack(base, data, count):
    """What om_hal_code.c does."""
    words, at = list(base), 0

    def take():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    end = len(words) + count
    while len(words) < end:
        for _ in range(take()):
            value = take()
            words.append((~(value >> 1) if value & 1 else value >> 1) & MASK)
        length = take()
        distance = take() if length else 0
        for _ in range(length):
            words.append(words[-distance])
    return words[len(base):]
