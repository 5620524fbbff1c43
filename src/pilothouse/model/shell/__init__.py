"""Shell text, read into the commands it could run.

`parse` finds every command, also those in substitutions, in strings given to `sh -c` or `eval`, in here-documents fed
to a shell and behind wrappers such as `sudo`, `env`, `xargs` and `find -exec`. It never raises. What cannot be read
with certainty is an entry in `Script.errors`; a change here must never turn such an entry into a guess. Judging
what the commands do is not done here.
"""

from __future__ import annotations

from functools import lru_cache

from . import statements  # noqa: F401  (fills the table of readers)
from .nouns import Command, Redirect, Scope, Script, State, Word
from .tree import MAX_LENGTH, Walker
from .wrappers import unwrap

__all__ = ["Command", "Redirect", "Script", "Word", "parse"]

_SHORT = 2_000


def parse(text: str, *, unwrapped: bool = True) -> Script:
    """Every command that `text` could run, and the reasons, if any, not to trust that list.

    With `unwrapped=False` simple commands stay as they are written: `sudo rm x` is one command of sudo, and the text
    given to `sh -c` is a word like any other.
    """
    if len(text) > _SHORT:
        return _parse_long(text[: MAX_LENGTH + 1], unwrapped)  # no more is read
    return _parse_short(text, unwrapped)


def _parse(text: str, unwrapped: bool) -> Script:
    state = State()
    Walker(state, unwrap if unwrapped else Walker.record).read(text, Scope())
    return state.script()


# one request is judged many times; long texts take megabytes, so few of them are kept
_parse_short = lru_cache(maxsize=256)(_parse)
_parse_long = lru_cache(maxsize=8)(_parse)
