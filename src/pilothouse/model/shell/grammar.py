"""The grammar of the shell: the names of its nodes, the parser, and the bounds on its input.

The parser's recovery from errors takes quadratic time, up to a minute for 64 KB of brackets. Long texts are mostly
data: a here-document or a string in single quotes. Those are replaced before parsing by as many letters, which are one
token; the rest must be short. If the tree then has anything but data in such a place, the text was not read as the
shell reads it and cannot be trusted.
"""

from __future__ import annotations

import re
from functools import cache
from string import ascii_letters, digits
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node


MAX_TOKENS = 6_000  # of one text, outside of data
MAX_TOTAL = 18_000  # of all the texts that are read for one script
MAX_SIGNS = 2_000  # characters outside of data that are more than a letter to the grammar
MAX_REPEATED = {"|": 1_500, "<<": 400, "case": 400, "select": 400}
_MIN_DATA = 8
_TOKEN = re.compile(r"\w+|[^\w \t]")
_LETTERS = str.maketrans("", "", ascii_letters + digits + " \n\t_./,:'\"=-")
_QUOTED = re.compile(
    r"""<<(?P<dash>-?)[ \t]*(?P<mark>['"])(?P<end>\w+)(?P=mark)(?=[\s;&|<>)])|\\.|"(?:[^"\\]|\\.)*"|'[^']*'""",
    re.DOTALL,
)

Span = tuple[int, int]


def hide_data(text: str) -> tuple[str, list[Span]]:
    """A long text with letters in place of its data, and where these are."""
    if len(text) <= MAX_SIGNS or text.count("<<") > MAX_REPEATED["<<"]:
        return text, []
    spans: list[Span] = []
    position = 0
    while (found := _QUOTED.search(text, position)) is not None:
        start, position = found.span()
        if found["end"]:
            span = _find_document(text, position, found["end"], found["dash"])
        else:
            span = (start + 1, position - 1) if text[start] == "'" else None
        if span is not None and span[1] - span[0] >= _MIN_DATA:
            spans.append(span)
            position = max(position, span[1])
    pieces, position = [], 0
    for start, end in spans:
        pieces += [text[position:start], "Z" * (end - start)]
        position = end
    return "".join([*pieces, text[position:]]), spans


def _find_document(text: str, position: int, end: str, dash: str) -> Span | None:
    """The lines of a here-document, without the last line end; None if it is not closed."""
    start = text.find("\n", position) + 1
    last_line = re.compile(rf"^\t*{end}$" if dash else rf"^{end}$", re.MULTILINE)
    closing = last_line.search(text, start) if start else None
    return (start, closing.start() - 1) if closing is not None and closing.start() > start else None


def count_tokens(text: str) -> int:
    """Roughly how many parts a text has for the grammar; each of them may cost a look at all others."""
    return sum(1 for _ in _TOKEN.finditer(text))


def is_intricate(text: str) -> bool:
    """Whether a text has so many signs that the grammar could take long for it."""
    signs = len(text.translate(_LETTERS))
    return signs > MAX_SIGNS or any(text.count(token) > limit for token, limit in MAX_REPEATED.items())


def holds_data(root: Node, text: str, start: int, end: int) -> bool:
    """Whether a part of the text is exactly the body of a quoted here-document, or of a string, to the grammar too."""
    node = root.descendant_for_byte_range(start, end)
    if node is not None and node.type == "raw_string":
        return (node.start_byte, node.end_byte) == (start - 1, end + 1)
    while node is not None and node.type != "heredoc_body":
        node = node.parent
    if node is None or node.parent is None or node.start_byte != start or text[end : node.end_byte].strip("\n\t"):
        return False
    if node.end_byte < end:
        return False
    marks = [child for child in node.parent.children if child.type == "heredoc_start"]
    return len(marks) == 1 and text[marks[0].start_byte] in "'\""


if TYPE_CHECKING:
    from tree_sitter import Language, Parser

EXPANSIONS = frozenset(
    {"simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion"}
)
SUBSTITUTIONS = {"command_substitution": "substitution", "process_substitution": "process-substitution"}
WORDS = EXPANSIONS | {
    "word", "number", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation",
    "brace_expression", "extglob_pattern", "regex", "command_name", "variable_name", "special_variable_name",
    "test_operator", "string_content",
}  # fmt: skip
EXPRESSIONS = frozenset(
    {"unary_expression", "binary_expression", "postfix_expression", "ternary_expression", "parenthesized_expression",
     "subscript", "array", "variable_assignment"}
)  # fmt: skip
SEPARATORS = frozenset({";", "&", "&&", "||", ";;", ";&", ";;&", "\n", "|", "|&", "!", "{", "}", "(", ")", "$(", "`",
                        "<(", ">(", "then", "fi", "if", "elif", "else", "while", "until", "do", "done", "for", "select",
                        "in", "case", "esac", "function", "((", "))", ","})  # fmt: skip
OPEN_WORDS = frozenset({"$", "=~", "==", "=", "[", "]", "!", "-", "+", "{", "}"})
RESERVED = frozenset({"!", "{", "}", "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case",
                      "esac", "in", "function", "select", "time", "coproc"})  # fmt: skip
REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
# a substitution that bash would see in text where the tree found none; in arithmetic even a backslash does not hide it
HIDDEN_SUBSTITUTION = re.compile(r"(?<!\\)(?:`|\$\((?!\())").search
SETS_VARIABLE = re.compile(
    r"\b[A-Z][A-Z0-9_]*\s*(?:(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--)|(?:\+\+|--)\s*[A-Z][A-Z0-9_]*\b"
).search
EVALUATED = re.compile(r"`|\$\((?!\()").search


@cache
def _grammar() -> Language:
    """Loaded on first use: it is too dear for an import."""
    from tree_sitter import Language
    from tree_sitter_bash import language

    return Language(language())


def parser() -> Parser:
    """A parser for one text: making it costs half a microsecond, and sharing one between threads is not safe."""
    from tree_sitter import Parser

    return Parser(_grammar())
