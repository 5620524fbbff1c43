"""Quote removal: from the source text of one word to its value.

The scanner here is independent of the grammar's own idea of a word. Wherever the two disagree (an operator inside a
word, a quote that does not close, an expansion the tree does not know) the word is reported, never guessed.
"""

from __future__ import annotations

import re

from .nouns import Word

_PLAIN = re.compile(r"[A-Za-z0-9_./:@%+,=^-]+").fullmatch
_EXPANSION_START = re.compile(r"[A-Za-z0-9_({@*#?$!\[-]").match
_TILDE = re.compile(r"(?:^|[=:])~").search
_BRACES = re.compile(r"\{[^{}\s]*(?:,|\.\.)|\{[^{}\s]*\{").search
_ANSI_NAMED = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_ANSI_CODED = re.compile(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c(.)|(.))", re.DOTALL
)

# characters that a person reads as a blank, a quote, a dash or an operator and bash as an ordinary letter
LOOKALIKES = frozenset(
    "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
    "\u200b\u200c\u200d\u2060\ufeff\u00ad\u2018\u2019\u201c\u201d\u2032\u2033\u02bc\uff02\uff07"
    "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\uff0d\u037e\uff1b\uff06\uff5c\uff1e\uff1c\uff04\uff08\uff09\u2223\u01c0"
    "\u2044\u2215\uff0f\u29f8\uff03\uff40\uff0a\u2217\uff5e\u223c"
)


def decode_ansi_c(body: str) -> str:
    """The value of what stands between `$'` and `'`."""

    def one(match: re.Match[str]) -> str:
        hexa, short, long, octal, control, other = match.groups()
        if hexa or short or long:
            code = int(hexa or short or long, 16)
            return chr(code) if code < 0x110000 else "\ufffd"
        if octal:
            return chr(int(octal, 8) & 0xFF)
        if control:
            return chr(ord(control) & 0x1F)
        return _ANSI_NAMED.get(other, "\\" + other)

    # bash ends the value at a NUL
    return _ANSI_CODED.sub(one, body).partition("\0")[0]


LOOKALIKE = "the shell text holds characters that look like blanks, quotes or operators and are not"


class Reader:
    """Reads words of one text; remembers what it met in `features` and `errors`."""

    __slots__ = ("errors", "features", "text")

    def __init__(self, text: str, features: set[str], errors: dict[str, None]) -> None:
        self.text = text
        self.features = features
        self.errors = errors

    def word(self, start: int, end: int, spans: dict[int, int]) -> Word:
        """The word between two positions; `spans` holds where the tree found expansions in it."""
        raw = self.text[start:end]
        if _PLAIN(raw):
            return Word(raw, True, False, raw)
        first = raw[0] if raw else ""
        if first == "'" and raw.find("'", 1) == len(raw) - 1 > 0:
            return Word(raw[1:-1], True, False, raw)
        return self._scan(start, end, spans, raw)

    def _scan(self, start: int, end: int, spans: dict[int, int], raw: str) -> Word:
        text, out, i = self.text, [], start
        static, glob, quoted, seen = True, False, False, 0
        bare: list[str] = []
        while i < end:
            char = text[i]
            if i in spans:
                stop = spans[i]
                out.append(text[i:stop])
                static, seen, i = False, seen + 1, stop
                bare.append("_")
                continue
            if char == "\\" and i + 1 < end:
                following = text[i + 1]
                if following == "\n":
                    pass
                elif quoted and following not in '$`"\\':
                    out.append(char + following)
                else:
                    out.append(following)
                if not quoted:
                    bare.append("_")
                i += 2
                continue
            if char == '"':
                quoted = not quoted
                bare.append("_")
                i += 1
                continue
            if char == "$":
                if not quoted and text[i + 1 : i + 2] == "'":
                    close = _ansi_end(text, i + 2, end)
                    if close < 0:
                        self.errors["a quote is not closed"] = None
                        break
                    out.append(decode_ansi_c(text[i + 2 : close]))
                    bare.append("_")
                    i = close + 1
                    continue
                if not quoted and text[i + 1 : i + 2] == '"':
                    i += 1
                    continue
                if i + 1 < end and _EXPANSION_START(text, i + 1):
                    self.errors["an expansion was not understood"] = None
                    static = False
            elif char == "`":
                self.errors["an expansion was not understood"] = None
                static = False
            elif not quoted:
                if char == "'":
                    close = text.find("'", i + 1, end)
                    if close < 0:
                        self.errors["a quote is not closed"] = None
                        break
                    out.append(text[i + 1 : close])
                    bare.append("_")
                    i = close + 1
                    continue
                if char in "*?[":
                    glob = True
                elif char == "#" and i == start:
                    self.errors["a comment was not understood"] = None
                elif char in ";&|<> \t\n":
                    self.errors["an operator stands inside a word"] = None
                elif char in "()":
                    glob = True
                elif char in LOOKALIKES:
                    self.features.add("lookalike")
                    self.errors[LOOKALIKE] = None
                elif char == "!" and i + 1 < end and text[i + 1] not in "=(" and i == start:
                    self.features.add("history")
                bare.append(char)
            out.append(char)
            i += 1
        if quoted:
            self.errors["a quote is not closed"] = None
        if seen != len(spans):
            self.errors["an expansion stands where the shell would not expand it"] = None
        unquoted = "".join(bare)
        if glob:
            self.features.add("glob")
        if "{" in unquoted and _BRACES(unquoted):
            self.features.add("brace")
            static = False
        if "~" in unquoted and _TILDE(unquoted):
            self.features.add("tilde")
            static = False
        return Word("".join(out), static and not glob, glob, raw)


def _ansi_end(text: str, start: int, end: int) -> int:
    """Where the `'` that closes an ANSI-C string stands, or -1."""
    i = start
    while i < end:
        if text[i] == "\\":
            i += 2
        elif text[i] == "'":
            return i
        else:
            i += 1
    return -1
