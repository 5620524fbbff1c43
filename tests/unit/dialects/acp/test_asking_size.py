"""One permission request of 100 KB, whatever is in it, causes a bounded amount of work on the event loop."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

from pilothouse.model import acts, shell
from pilothouse.model.shell import grammar as bounds
from pilothouse.model.shell import parse, tree
from tests.support.scenario import Drive, only

SIZE = 100_000
MOST_CALLS = 15_000_000
"""Calls of functions for one request: some are linear with a large factor; quadratic work would be billions."""
MOST_TOKENS = 100_000
"""Tokens that the grammar reads for one request, in several texts."""
SECONDS = 20.0
"""For work inside one call, such as a search: a request takes tenths of a second, quadratic work takes minutes."""


def fill(unit: str, size: int = SIZE) -> str:
    return unit * (size // len(unit))


def command(text: object) -> dict[str, Any]:
    return {"title": "Bash", "kind": "execute", "rawInput": {"command": text}}


def content(*texts: str) -> dict[str, Any]:
    items = [{"type": "content", "content": {"type": "text", "text": text}} for text in texts]
    return {"title": "Bash", "kind": "execute", "content": items}


def edit_file(lines: int, edits: int) -> dict[str, Any]:
    old = "\n".join(f"line {number} of the file" for number in range(lines))
    given = [
        {"old_string": f"line {number} of the file", "new_string": f"LINE {number} of the file"}
        for number in range(0, lines, lines // edits)
    ]
    diff = {"type": "diff", "path": "/work/app/a.txt", "oldText": old, "newText": old.replace("line", "LINE")}
    raw = {"file_path": "/work/app/a.txt", "edits": given}
    return {"title": "Edit", "kind": "edit", "content": [diff], "rawInput": raw}


def list_runs() -> Iterator[str]:
    length, size = 3, 0
    while size < SIZE:
        yield "`" * length
        size += length + 1
        length += 1


UNITS = (
    *("'' ", "((a", "'case x in a) b;; '", "case x in a) b;; ", "case x in b =", "a|", "a<<b ", "a)", "a=( ", "@1"),
    *(">&~ ", "$[a", "${a", "$((a", "[[ a ", "a;", "a\n", "env ", "))" + "-" * 16, "`a ", '"a" ', "cat <<E\na\nE\n"),
)
REQUESTS: dict[str, dict[str, Any]] = {
    **{f"command of {unit!r}": command(fill(unit)) for unit in UNITS},
    **{f"short command of {unit!r}": command(fill(unit, 8_000)) for unit in UNITS},
    "one word": command("a" * 1_000_000),
    "very long command": command("a " * 5_000_000),
    "argument list": command(["a"] * (SIZE // 4)),
    "growing fences": content("\n".join(list_runs())),
    "mixed fences": content(fill("~~~\n```\n")),
    "label and blanks": content("command: a" + " " * SIZE + "b"),
    "half a description": content("[current working directory ] " + fill("] (")),
    "many items": content(*(f"$ ls {number}" for number in range(1_300))),
    "many edits": edit_file(20_000, 2_000),
    "several edits": edit_file(5_000, 500),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_work_for_a_request_is_bounded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for cache in (shell._parse_short, shell._parse_long, acts._plain_words):
        cache.cache_clear()
    calls, tokens, make = 0, 0, tree.parser

    def count_calls(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    class Counting:
        def parse(self, text: bytes) -> Any:
            nonlocal tokens
            found = bounds.count_tokens(text.decode())
            assert found <= bounds.MAX_TOKENS
            tokens += found
            return make().parse(text)

    monkeypatch.setattr(tree, "parser", Counting)
    started = time.process_time()
    asked = only(Drive().ask("c1", **REQUESTS[name]), "approval:requested")
    assert time.process_time() - started < SECONDS
    sys.setprofile(count_calls)
    try:
        Drive().ask("c1", **REQUESTS[name])
    finally:
        sys.setprofile(None)
    assert calls < MOST_CALLS
    assert tokens < MOST_TOKENS
    if name.startswith("command of"):
        assert asked.risk_level in ("high", "critical")


HIDDEN = "$(touch pwned)"
PAD = "x y " * 3_000
CODE = "\n".join(f"print({number}, [a | b])  # <{number}>" for number in range(900))


@pytest.mark.parametrize(
    "text",
    [
        f"cat <<EOF\n'{PAD}{HIDDEN}'\nEOF\n",
        f"cat <<A <<'B'\n{PAD}{HIDDEN}\nB\n",
        f"cat <<A <<'B'\n{PAD}{HIDDEN}\nA\n{PAD}\nB\n",
        f"cat <<EOF\n<<'E'\n{PAD}{HIDDEN}\nE\nEOF\n",
        f"cat <<'E'F\n{PAD}\nE\nEF\n{HIDDEN}",
        f"# '\n{HIDDEN} {PAD}\n#'\n",
        f"echo \"${{x:-'{PAD}{HIDDEN}'}}\"",
        f"echo $(( '{PAD}{HIDDEN}' ))",
        f"echo \\'{PAD}{HIDDEN} '",
        f"echo $'\\'{PAD}' {HIDDEN} '{PAD}'",
    ],
)
def test_a_long_text_that_looks_quoted_and_is_not_is_never_trusted(text: str) -> None:
    script = parse(text)
    assert not script.trusted or "touch" in [command.name for command in script.commands]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (f"cat > a.py <<'EOF'\n{CODE}\nEOF\nls\n", ["cat", "ls"]),
        (f"cat > a.py <<-'EOF'\n{CODE}\n\tEOF\nls\n", ["cat", "ls"]),
        (f"apply_patch <<'EOF' && rm x\n{CODE}\nEOF\n", ["apply_patch", "rm"]),
        (f"python3 -c '{CODE}'; rm y", ["python3", "rm"]),
        (f"bash -c 'echo a; cat <<\"EOF\"\n{CODE}\nEOF\n'; rm y", ["echo", "cat", "rm"]),
    ],
)
def test_long_data_is_read_past(text: str, names: list[str]) -> None:
    assert len(text) > 20_000
    script = parse(text)
    assert script.errors == ()
    assert [command.name for command in script.commands] == names
