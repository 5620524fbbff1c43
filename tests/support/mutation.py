"""Messages that were once right: values replaced, removed, renamed or moved, bytes changed, lines cut."""

from __future__ import annotations

import json
import random
from copy import deepcopy
from typing import Any


def nested(depth: int) -> Any:
    """Objects and lists in one another."""
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


ODD: list[Any] = [None, True, -1, 0, 1e308, 10**30, "", "x" * 300, "\0", "\ud800", [], [[]], {}, {"": {}}, "2.0", 3.5]
DEPTHS = (100, 150, 300, 450)
"""How deeply values are nested that some find too deep, and no one may stumble over; json itself writes no more."""
RAW = [
    b"",
    b"null",
    b"[]",
    b"\xff\xfe",
    b"{" * 200,
    b"[" * 3000,
    b'"',
    b"\x00",
    b"NaN",
    b"-",
    b'{"id":',
    b"\xef\xbb\xbf{}",
]


class Mutator:
    """An endless supply of messages like those of the corpus, each one wrong in its own way."""

    def __init__(self, corpus: list[dict[str, Any]], seed: int) -> None:
        self.rng = random.Random(seed)
        self.encoded = [json.dumps(message).encode() for message in corpus]

    def line(self) -> bytes:
        kind = self.rng.random()
        if kind < 0.45:
            line = self.structural()
        elif kind < 0.95:
            line = self.bytewise()
        else:
            line = self.rng.choice(RAW)
        return line.replace(b"\n", b" ")

    def structural(self) -> bytes:
        """Valid JSON with some values replaced, removed, renamed or moved."""
        message = json.loads(self.rng.choice(self.encoded))
        for _ in range(self.rng.randint(1, 3)):
            self.disturb(message)
        return json.dumps(message).encode()

    def disturb(self, node: Any) -> None:
        rng = self.rng
        while True:
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not keys:
                return
            key = rng.choice(keys)
            child = node[key]
            if isinstance(child, (dict, list)) and child and rng.random() < 0.75:
                node = child
                continue
            action = rng.randrange(4)
            if action == 0:
                node[key] = nested(rng.choice(DEPTHS)) if rng.random() < 0.1 else deepcopy(rng.choice(ODD))
            elif action == 1:
                del node[key]
            elif action == 2 and isinstance(node, dict):
                node[f"{key}{rng.choice('xX_')}"] = node.pop(key)
            else:
                node[key] = json.loads(rng.choice(self.encoded))
            return

    def bytewise(self) -> bytes:
        rng = self.rng
        line = bytearray(rng.choice(self.encoded))
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(line) + 1)
            action = rng.randrange(5)
            if action == 0:
                line[at : at + 1] = bytes([rng.randrange(256)])
            elif action == 1:
                line[at:at] = rng.randbytes(rng.randint(1, 5))
            elif action == 2:
                del line[at : at + rng.randint(1, 20)]
            elif action == 3:
                other = rng.choice(self.encoded)
                cut = rng.randrange(len(other))
                line[at:] = other[cut:]
            else:
                del line[at:]
            if not line:
                break
        return bytes(line)
