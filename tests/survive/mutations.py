"""Bad files by the thousand: honest ones torn, flipped, swapped, swollen, and lies with a valid checksum.

A blind flip of a bit dies at the checksum, so each kind of file also has a liar who changes what it says and
then signs it again: only these reach the code behind the checksum.
"""

import io
import json
import random
import re
import struct
import zipfile
from collections.abc import Callable

import numpy as np

from pushforward.container import digest

NUMBERS = (
    *(b"0", b"-1", b"1e999", b"-1e400", b"NaN", b"Infinity", b"null", b"true", b'"1"', b"1.5", b"[]", b"{}"),
    *(b"2147483648", b"9223372036854775808", b"18446744073709551616", b"1" * 400, b"9" * 5000),
)
VALUES = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 10**400, 1.5, -0.0, 1e308, float("inf"), float("nan")),
    *(
        "",
        "x",
        "../../../etc/passwd",
        "/etc/passwd",
        "__import__('os').system('true')",
        "\ud800",
        "\0",
        "a" * 9999,
    ),
    *(
        [],
        {},
        [[]],
        [0] * 50,
        {"a": {}},
        {"tensor": "x"},
        {"module": "MLP", "fields": {}},
        {"value": 1},
        {"tuple": []},
    ),
)


# Blind


def truncated(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def extended(rng: random.Random, data: bytes) -> bytes:
    return data + rng.randbytes(rng.choice((1, 8, 1000)))


def flipped(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 32))):
        if out:
            out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def overwritten(rng: random.Random, data: bytes) -> bytes:
    start, length = rng.randrange(len(data) + 1), rng.choice((1, 4, 8, 64))
    filler = rng.choice((b"\0", b"\xff", b"[", b"{", b'"', b"9")) * length
    return data[:start] + filler + data[start + length :]


def doubled(rng: random.Random, data: bytes) -> bytes:
    a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return data[:b] + data[a:b] * rng.choice((1, 2, 20)) + data[b:]


def cut(rng: random.Random, data: bytes) -> bytes:
    a, b = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return data[:a] + data[b:]


def swapped(rng: random.Random, data: bytes) -> bytes:
    a, b, c = sorted(rng.randrange(len(data) + 1) for _ in range(3))
    return data[:a] + data[b:c] + data[a:b] + data[c:]


def renumbered(rng: random.Random, data: bytes) -> bytes:
    """Replace a number written in text."""
    found = list(re.finditer(rb"-?\d+(\.\d+)?(e-?\d+)?", data))
    if not found:
        return flipped(rng, data)
    match = rng.choice(found)
    return data[: match.start()] + rng.choice(NUMBERS) + data[match.end() :]


def resized(rng: random.Random, data: bytes) -> bytes:
    """Replace a machine integer: where lengths and offsets are kept."""
    size = rng.choice((2, 4, 8))
    at = rng.randrange(max(1, min(len(data), rng.choice((16, len(data))))))
    number = rng.choice((0, 1, 2**15, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1)) % 2 ** (8 * size)
    return data[:at] + number.to_bytes(size, "little") + data[at + size :]


def nested(rng: random.Random, data: bytes) -> bytes:
    del data
    mark, end = rng.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")"), (b"-", b"1")))
    depth = rng.choice((50, 2000, 100_000))
    return mark * depth + b"1" + (end * depth if rng.random() < 0.5 else b"")


def noise(rng: random.Random, data: bytes) -> bytes:
    return rng.randbytes(rng.choice((0, 1, 7, 8, 100, len(data))))


BLIND: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    *(truncated, extended, flipped, overwritten, doubled, cut, swapped, renumbered, resized, nested, noise),
)


# Liars


def lie(rng: random.Random, tree: object, depth: int = 0) -> object:
    """Change one place of a JSON tree."""
    if isinstance(tree, dict) and tree and (depth == 0 or rng.random() < 0.85):
        name = rng.choice(sorted(tree))
        act = rng.random()
        if act < 0.08:
            return {n: v for n, v in tree.items() if n != name}
        if act < 0.14:
            return {**tree, rng.choice(("extra", "", "\ud800", name + "2")): rng.choice(VALUES)}
        if act < 0.20:
            other = rng.choice(sorted(tree))
            return {**tree, name: tree[other], other: tree[name]}
        return {**tree, name: lie(rng, tree[name], depth + 1)}
    if isinstance(tree, list) and tree and rng.random() < 0.85:
        place = rng.randrange(len(tree))
        if rng.random() < 0.15:
            return tree[:place] + tree[place + 1 :]
        return [*tree[:place], lie(rng, tree[place], depth + 1), *tree[place + 1 :]]
    if isinstance(tree, bool | int | float) and rng.random() < 0.5:
        return rng.choice((tree + 1, tree - 1, -tree, tree * 2**32, tree + 0.5))
    return rng.choice(VALUES)


def json_liar(rng: random.Random, data: bytes) -> bytes:
    """Change what a line (or all) of a JSON file says."""
    whole = not data.startswith(b'{"')
    lines = [data] if whole else data.splitlines(keepends=True)
    place = rng.randrange(len(lines))
    changed = json.dumps(lie(rng, json.loads(lines[place]))).encode()
    lines[place] = changed + b"\n"
    if rng.random() < 0.1:
        rng.shuffle(lines)
    return b"".join(lines)


def safetensors_liar(rng: random.Random, data: bytes) -> bytes:
    """Change what a sampler's file or a checkpoint says, numbers or words, and sign it again."""
    length = int.from_bytes(data[:8], "little")
    header, numbers = json.loads(data[8 : 8 + length]), bytearray(data[8 + length :])
    words = header.pop("__metadata__")
    body = json.loads(words["body"])
    act = rng.random()
    if act < 0.6:
        body = lie(rng, body)
        words["body"] = json.dumps(body)
    elif act < 0.75:
        place = rng.randrange(max(1, len(numbers) // 4)) * 4
        special = struct.pack("<f", rng.choice((float("nan"), float("inf"), -1.0, 0.0, 1e38, 1e-45)))
        numbers[place : place + 4] = special
    else:
        header = lie(rng, header)
    if rng.random() < 0.15:
        words = {**words, rng.choice(sorted(words)): str(rng.choice(VALUES))}
    if isinstance(header, dict):
        try:
            tensors = {
                name: np.frombuffer(
                    bytes(numbers[slice(*entry["data_offsets"])]),
                    entry["dtype"].lower().replace("f32", "f4").replace("f64", "f8"),
                ).reshape(entry["shape"])
                for name, entry in header.items()
            }
            words["sha256"] = digest(words["body"], tensors)
        except (TypeError, ValueError, KeyError, AttributeError, OverflowError, MemoryError):
            pass
        header = {"__metadata__": words, **header}
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + bytes(numbers)


def npy_liar(rng: random.Random, data: bytes) -> bytes:
    """Write another header over the same numbers."""
    length = int.from_bytes(data[8:10], "little")
    descr = rng.choice(
        ("'<f4'", "'<f8'", "'|O'", "'<U999'", "[('a', '<f4')]", "'f4,f4'", "'<f99'", "7", "'|b1'", "'<c16'")
    )
    shape = rng.choice(("(3, 2)", "(2**62,)", "(4611686018427387904, 4)", "(0, 9223372036854775807)", "(-1, 2)", "(6,)", "()",
                        "(1.0, 2)", "[3, 2]", "(True, 6)", "(" + "1, " * 60 + ")", "None"))  # fmt: skip
    order = rng.choice(("False", "True", "0", "None"))
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    if rng.random() < 0.1:
        text = rng.choice((b"__import__('os').system('touch executed')\n", b"'" + b"a" * 4000, b"(" * 3000))
    return data[:8] + len(text).to_bytes(2, "little") + text + data[10 + length :]


def npz_liar(rng: random.Random, data: bytes) -> bytes:
    """Pack changed members with good checksums, or lie in the directory about their sizes."""
    if rng.random() < 0.5:
        return _lying_directory(rng, data)
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            member = old.read(name)
            change = rng.choice((lambda r, d: d, npy_liar, truncated, extended, flipped))
            name = rng.choice((name, name, "../../escaped.npy", "/tmp/escaped.npy", "evil.pkl", "a\0.npy"))
            if name.partition("\0")[0] not in new.namelist():
                new.writestr(name, change(rng, member))
    return buffer.getvalue()


def _lying_directory(rng: random.Random, data: bytes) -> bytes:
    out, sizes = bytearray(data), (20, 24, 42, 10, 8, 28)
    for match in re.finditer(rb"PK\x01\x02", data):
        at = match.start() + rng.choice(sizes)
        out[at : at + 4] = rng.choice((0, 1, 2**20, 2**31, 2**32 - 2)).to_bytes(4, "little")
    return bytes(out)


def table_liar(rng: random.Random, data: bytes) -> bytes:
    """Put a word that is no honest number, or no name, into one cell of a table of text."""
    rows = [line.split(b",") for line in data.splitlines()]
    row = rng.choice(rows)
    word = rng.choice(
        (
            b"nan",
            b"inf",
            b"1e999",
            b"",
            b"x",
            b"0x10",
            b"1_0",
            b'"1',
            b"\xff",
            b"9" * 5000,
            b"1j",
            b"#",
            b"\0",
        )
    )
    row[rng.randrange(len(row))] = word
    if rng.random() < 0.2:
        rows[rng.randrange(len(rows))].append(word)
    return b"\n".join(map(b",".join, rows)) + b"\n" * rng.choice((0, 1, 1, 1, 3))


def words_liar(rng: random.Random, data: bytes) -> bytes:
    """Change machine integers and bytes of the part of a file that says what the rest is: its last quarter, or all."""
    start = rng.choice((0, 3 * len(data) // 4, max(0, len(data) - 400)))
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(start, len(out))
        number = rng.choice(
            (0, 1, 127, 128, 255, 2**15, 2**31 - 1, 2**32 - 1, 2**63 - 1, rng.randrange(2**32))
        )
        size = rng.choice((1, 1, 2, 4, 8))
        out[at : at + size] = (number % 2 ** (8 * size)).to_bytes(size, "little")
    return bytes(out[: len(data)])


LIARS = {
    "sampler": safetensors_liar,
    "checkpoint": safetensors_liar,
    "found": safetensors_liar,
    "records": json_liar,
    "run": json_liar,
    "history": json_liar,
    "note": json_liar,
    "npy": npy_liar,
    "npz": npz_liar,
    "runtime": safetensors_liar,
    "results": json_liar,
    "part": npy_liar,
    "show sampler": safetensors_liar,
    "show run": json_liar,
    "show draws": npz_liar,
    "join": npy_liar,
    "check": npz_liar,
    "named npy": npy_liar,
    "named npz": npz_liar,
    "csv": table_liar,
    "parquet": words_liar,
    "nc": words_liar,
    "idx": words_liar,
}


def mutate(rng: random.Random, kind: str, data: bytes, strangers: list[bytes]) -> bytes:
    """Return a bad version of an honest file; `strangers` are honest files of other kinds."""
    act = rng.random()
    if act < 0.03:
        return rng.choice(strangers)
    if act < 0.06:
        return data[: rng.randrange(len(data) + 1)] + rng.choice(strangers)
    if act < 0.5:
        return LIARS[kind](rng, data)
    changed = data
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        changed = rng.choice(BLIND)(rng, changed)
    return changed
