"""The names of the grammar's nodes, by what they are to the walk, and the parser itself."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

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
