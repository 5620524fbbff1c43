"""From tree-sitter's tree to commands.

The grammar recovers from errors silently and has gaps of its own, so the walk trusts nothing it cannot account for:
a node type without a reader, text between two nodes that is not blank, a here-document or comment that ends elsewhere
than bash would end it, all become errors of the script. Being too strict costs a question; being too lax costs a home
directory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from .grammar import (
    EVALUATED,
    EXPANSIONS,
    EXPRESSIONS,
    HIDDEN_SUBSTITUTION,
    MAX_TOKENS,
    MAX_TOTAL,
    OPEN_WORDS,
    REDIRECTS,
    RESERVED,
    SEPARATORS,
    SETS_VARIABLE,
    SUBSTITUTIONS,
    WORDS,
    count_tokens,
    hide_data,
    holds_data,
    is_intricate,
    parser,
)
from .nouns import Command, Draft, Scope, State, Word
from .quoting import Reader
from .redirects import attached, redirect

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_LENGTH = 65_536
MAX_DEPTH = 48  # of syntax
MAX_NESTING = 6  # of scripts inside scripts
MAX_COMMANDS = 2_000

MAX_PIECES = 200  # of a text with a syntax error, read one by one

_OPERATORS = re.compile(r"[;&|\n(){}`]+|\$\(")
_BLANK = re.compile(r"(?:[ \t\n]|\\\n)*").fullmatch
_BLANK_IN_LINE = re.compile(r"(?:[ \t]|\\\n)*").fullmatch
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]").search
_SURROGATE = re.compile("[\ud800-\udfff]").search
_BACKQUOTED = re.compile(r"\\[$`\\\"]").search
_LONE_DASH = re.compile(r"[ \t]+-[ \t]*").fullmatch
_WHOLE_VARIABLE = re.compile(r'"\$(?:(\w+)|\{(\w+)\})"').fullmatch
_LITERAL_DOCUMENT = re.compile(
    r""""\$\(cat <<[ \t]*(?P<quote>['"])(?P<end>\w+)(?P=quote)\n"""
    r"""(?P<body>(?:(?!(?P=end)\n).*\n)*)(?P=end)\n[ \t\n]*\)\""""
).fullmatch
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[.*\])?", re.DOTALL).fullmatch

Unwrap = Callable[["Walker", Draft], None]


class Walker:
    """Reads one text; scripts found inside it are read by further walkers that share the state."""

    __slots__ = ("errors", "features", "nesting", "reader", "state", "text", "unwrap")

    def __init__(self, state: State, unwrap: Unwrap, nesting: int = 0) -> None:
        self.state = state
        self.errors = state.errors
        self.features = state.features
        self.unwrap = unwrap
        self.nesting = nesting
        self.text = ""
        self.reader = Reader("", self.features, self.errors)

    def error(self, reason: str) -> None:
        self.errors[reason] = None

    def dynamic(self, reason: str) -> None:
        """Code runs that is not in the text."""
        self.features.add("dynamic-code")
        self.error(reason)

    # ---- scripts -------------------------------------------------------------------------------------------------

    def read(self, text: str, scope: Scope) -> None:
        """Read a whole script; every command in it lands in the state."""
        text = self._checked(text)
        self.text = self.reader.text = text
        if _BLANK(text):
            return
        plain, spans = hide_data(_NOT_ASCII.sub("Z", text))
        tokens = count_tokens(plain)
        self.state.tokens += tokens
        if tokens > MAX_TOKENS or self.state.tokens > MAX_TOTAL or is_intricate(plain):
            self.error("the shell text is too intricate to judge")
            return
        # The grammar's scanner gives code points to C's character tables, and one beyond them ends the process. Each
        # letter outside ASCII becomes one that, like it, is only ever part of a word; positions stay the same.
        tree = parser().parse(plain.encode("ascii"))
        root = tree.root_node
        if not all(holds_data(root, plain, start, end) for start, end in spans):
            self.error("the shell text is too intricate to judge")
            return
        if root.has_error:
            self.error("the shell text has a syntax error")
            self._salvage(scope)
        before = len(self.errors)
        self.sequence(root, scope, 0)
        if not _BLANK(text[: root.start_byte]) or not _BLANK(text[root.end_byte :]):
            self.error("part of the shell text was not understood")
        if len(self.errors) > before:
            self._salvage_lines(scope)

    def _salvage_lines(self, scope: Scope) -> None:
        """Read each line on its own as well: the grammar sometimes takes the end of a line for a space."""
        lines = [line for line in self.text.split("\n") if line.strip()]
        if not 1 < len(lines) <= MAX_PIECES or self.nesting >= MAX_NESTING:
            return
        for line in lines:
            Walker(self.state, self.unwrap, MAX_NESTING).read(line, scope)

    def _salvage(self, scope: Scope) -> None:
        """Read each piece of a broken text on its own, so that a stray bracket does not hide what it stands beside."""
        pieces = [piece for piece in _OPERATORS.split(self.text) if piece and not piece.isspace()]
        if not 1 < len(pieces) <= MAX_PIECES or self.nesting >= MAX_NESTING:
            return
        for piece in pieces:
            Walker(self.state, self.unwrap, MAX_NESTING).read(piece, scope)

    def _checked(self, text: str) -> str:
        if len(text) > MAX_LENGTH:
            self.error("the shell text is too long to judge")
            text = text[:MAX_LENGTH]
        if "\r" in text:
            # bash takes a carriage return for a letter; the lines are read as they were meant, but not trusted
            text = text.replace("\r\n", "\n")
            self.error("the shell text has carriage returns")
        if _CONTROL.search(text):
            self.error("the shell text holds control characters")
            text = _CONTROL.sub(" ", text)
        if not text.isascii():
            if _SURROGATE(text):
                self.error("the shell text is not valid Unicode")
                text = text.encode("utf-8", "replace").decode()
            if _BIDI(text):
                self.error("the shell text holds characters that change the direction of writing")
        return text

    def nested(self, text: Word | str, scope: Scope, wrapper: str) -> None:
        """Read a script held in a string, such as the argument of `sh -c`."""
        scope = scope._replace(wrappers=(*scope.wrappers, wrapper), feed=None, bound=())
        if isinstance(text, Word):
            if not text.static and (text.raw[:1] != "~"):
                self.dynamic(f"{wrapper} runs text that is only known when it runs")
            text = text.text
        if self.nesting >= MAX_NESTING:
            self.error("scripts are nested too deeply")
            return
        Walker(self.state, self.unwrap, self.nesting + 1).read(text, scope)

    # ---- statements ----------------------------------------------------------------------------------------------

    def sequence(self, node: Node, scope: Scope, depth: int) -> None:
        """Read all statements among a node's children, whatever separates them."""
        children = node.children
        last = len(children) - 1
        self.edges(node, children)
        end = -1
        for index, child in enumerate(children):
            start = child.start_byte
            if end >= 0 and end != start:
                self.gap(end, start)
            end = child.end_byte
            kind = child.type
            if child.is_named:
                inner = scope
                if index < last and children[index + 1].type == "&":
                    self.features.add("background")
                    inner = scope.inside("background")
                self.statement(child, kind, inner, depth + 1)
            elif kind not in SEPARATORS:
                self.error(f"the shell text has an operator that was not understood: {kind}")

    def statement(self, node: Node, kind: str, scope: Scope, depth: int) -> None:
        if depth > MAX_DEPTH:
            self.error("the shell text is nested too deeply")
            return
        if len(self.state.commands) > MAX_COMMANDS:
            self.error("the shell text has too many commands")
            return
        handler = HANDLERS.get(kind)
        if handler is not None:
            handler(self, node, scope, depth)
        elif kind in WORDS:
            self.loose(node, scope, depth)
        elif kind in EXPRESSIONS:
            self.expression(node, scope, depth)
        else:
            self.error("the shell text has a syntax error" if kind == "ERROR" else f"{kind} was not understood")
            self.sequence(node, scope, depth)

    def gap(self, start: int, end: int, *, in_line: bool = False) -> None:
        """Only blanks may stand between two nodes; a line continuation may not join two tokens."""
        text = self.text[start:end]
        if text == " ":
            return
        if not (_BLANK_IN_LINE if in_line else _BLANK)(text):
            self.error("part of the shell text was not understood")
        elif "\\" in text and not text.replace("\\\n", ""):
            self.error("a line continuation stands inside a word or operator")

    def edges(self, node: Node, children: list[Node]) -> None:
        """Nothing but blanks may stand between a node's ends and its outer children."""
        start, end = node.start_byte, node.end_byte
        if not children:
            if not _BLANK(self.source(node)):
                self.error("part of the shell text was not understood")
            return
        if children[0].start_byte != start:
            self.gap(start, children[0].start_byte)
        if children[-1].end_byte != end:
            self.gap(children[-1].end_byte, end)

    def loose(self, node: Node, scope: Scope, depth: int) -> None:
        """A word outside a command (`for x in WORD`, `case WORD in`): only what it substitutes can run."""
        subs: list[Node] = []
        self.word(node, subs)
        self.substitutions(subs, scope, depth)

    def substitutions(self, subs: Iterable[Node], scope: Scope, depth: int) -> None:
        for sub in subs:
            name = SUBSTITUTIONS[sub.type]
            self.features.add(name)
            if self.text[sub.start_byte] == "`" and _BACKQUOTED(self.source(sub)):
                self.error("backquotes take off a backslash before the text is read")
            self.sequence(sub, scope._replace(redirects=(), context=scope.context | {name}), depth + 1)

    def expression(self, node: Node, scope: Scope, depth: int) -> None:
        """Tests and arithmetic: the words in them may substitute commands."""
        if depth > MAX_DEPTH:
            self.error("the shell text is nested too deeply")
            return
        for child in node.children:
            kind = child.type
            if kind in EXPRESSIONS:
                self.expression(child, scope, depth + 1)
            elif kind in WORDS:
                self.loose(child, scope, depth)
            elif child.is_named and kind != "comment":
                self.statement(child, kind, scope, depth + 1)

    # ---- words ---------------------------------------------------------------------------------------------------

    def word(self, node: Node, subs: list[Node], end: int = -1) -> Word:
        """The word a node stands for; commands it substitutes are added to `subs`."""
        spans: dict[int, int] = {}
        if node.child_count:
            self.collect(node, spans, subs)
        return self.reader.word(node.start_byte, node.end_byte if end < 0 else end, spans)

    def collect(self, node: Node, spans: dict[int, int], subs: list[Node]) -> None:
        """Find the expansions of a word and the substitutions in them."""
        stack = [node]
        while stack:
            here = stack.pop()
            kind = here.type
            if kind not in EXPANSIONS:
                stack.extend(reversed(here.children))
                continue
            start, end = here.start_byte, here.end_byte
            spans[start] = end
            if kind in SUBSTITUTIONS:
                subs.append(here)
            else:
                self.features.add("arithmetic" if kind == "arithmetic_expansion" else "variable")
                if kind != "simple_expansion":
                    self.within(here, subs)
                if kind == "arithmetic_expansion":
                    self.evaluated(here)

    def within(self, node: Node, subs: list[Node]) -> None:
        """Substitutions inside `${…}` and `$((…))`, with a check that the tree saw all of them."""
        if HIDDEN_SUBSTITUTION(self.outside(node, subs)):
            self.error("an expansion was not understood")

    def evaluated(self, node: Node) -> None:
        """Arithmetic expands its text once more: what quotes keep from the tree, bash runs all the same."""
        text = self.outside(node, [])
        if EVALUATED(text):
            self.dynamic("arithmetic runs commands that stand in quotes")
        if SETS_VARIABLE(text):
            self.error("arithmetic sets a variable that other programs look at")

    def outside(self, node: Node, subs: list[Node]) -> str:
        """The text of a node without the substitutions the tree found in it; these are added to `subs`."""
        text = self.text
        rest: list[str] = []
        position = node.start_byte
        stack = list(reversed(node.children))
        while stack:
            here = stack.pop()
            if here.type in SUBSTITUTIONS:
                subs.append(here)
                rest.append(text[position : here.start_byte])
                position = here.end_byte
            else:
                stack.extend(reversed(here.children))
        rest.append(text[position : node.end_byte])
        return "".join(rest)

    # ---- simple commands -----------------------------------------------------------------------------------------

    def emit(self, draft: Draft, subs: list[Node], depth: int) -> None:
        """Take off the wrappers of a command and record it, then what it substitutes."""
        self.unwrap(self, draft)
        self.substitutions(subs, draft.scope, depth)
        for node, scope in draft.after:
            self.statement(node, node.type, scope, depth + 1)

    def record(self, draft: Draft) -> None:
        """Add the command to the script as it now stands."""
        scope = draft.scope
        if draft.assignments:
            self.features.add("assignment")
        if draft.words:
            first = draft.words[0]
            if not first.static and first.raw[:2] != "~/":
                self.error("the name of a program is only known when it runs")
            if first.raw in RESERVED:
                self.error(f"the reserved word {first.raw} was not understood")
        self.state.commands.append(
            Command(
                tuple(draft.words),
                tuple(draft.assignments),
                (*draft.redirects, *scope.redirects),
                (*scope.wrappers, *draft.wrappers),
                scope.piped,
                scope.context,
            )
        )

    def simple(self, children: list[Node], draft: Draft, subs: list[Node]) -> None:
        """Read assignments, words and redirections in any order into a draft."""
        end = -1
        index, count = 0, len(children)
        while index < count:
            child = children[index]
            index += 1
            start = child.start_byte
            kind = child.type
            if kind == "heredoc_redirect" and _LONE_DASH(self.text, max(end, 0), start):
                # the grammar loses the dash of `python - <<EOF`
                draft.words.append(Word("-", True, False, "-"))
            elif end >= 0 and end != start:
                self.gap(end, start, in_line=True)
            elif end == start and kind not in REDIRECTS and self.text[end - 1] != "-":
                # only a word can be next to a word, and those are read together below
                self.error("two parts of a command are not separated")
            end = child.end_byte
            if kind in WORDS or (kind in OPEN_WORDS and not child.is_named):
                # nodes without a blank between them are one word
                spans: dict[int, int] = {}
                if child.child_count:
                    self.collect(child, spans, subs)
                while index < count and children[index].start_byte == end and _wordlike(children[index]):
                    child_next = children[index]
                    self.collect(child_next, spans, subs)
                    end = child_next.end_byte
                    index += 1
                draft.words.append(self.known(self.reader.word(start, end, spans), draft.scope, subs, start))
            elif kind == "variable_assignment":
                draft.assignments.append(self.assignment(child, subs))
            elif kind in REDIRECTS:
                fd = None if child.children[0].type.startswith("&") else attached(self, draft, start)
                redirect(self, child, draft, subs, fd)
            elif kind == "comment":
                self.comment(child, draft.scope, 0)
            else:
                self.error(f"{kind} was not understood")
                if child.is_named:
                    self.statement(child, kind, draft.scope, 1)

    def known(self, word: Word, scope: Scope, subs: list[Node], start: int) -> Word:
        """The word with a value for what it expands, where the text itself gives one."""
        if word.static or word.raw[:2] != '"$':
            return word
        if scope.bound and (name := _WHOLE_VARIABLE(word.raw)):
            value = dict(scope.bound).get(name[1] or name[2])
            return value or word
        if word.raw[:3] == '"$(' and (text := _LITERAL_DOCUMENT(word.raw)) and subs[-1].start_byte == start + 1:
            # `"$(cat <<'EOF' … )"` is a way to write a text of several lines, and runs nothing else
            subs.pop()
            return Word(text["body"].rstrip("\n"), True, False, word.raw)
        return word

    def assignment(self, node: Node, subs: list[Node]) -> tuple[str, Word]:
        children = node.children
        name = self.source(children[0])
        if not _VARIABLE_NAME(name):
            self.error("an assignment was not understood")
        if children[0].child_count:
            self.collect(children[0], {}, subs)
        if len(children) < 3:
            return name, Word("")
        start, end = children[2].start_byte, children[-1].end_byte
        if children[2].type == "array":
            spans: dict[int, int] = {}
            self.collect(children[2], spans, subs)
            raw = self.text[start:end]
            return name, Word(raw, False, False, raw)
        spans = {}
        for child in children[2:]:
            self.collect(child, spans, subs)
        return name, self.reader.word(start, end, spans)

    def source(self, node: Node) -> str:
        return self.text[node.start_byte : node.end_byte]

    def comment(self, node: Node, scope: Scope, depth: int) -> None:
        self.features.add("comment")
        start = node.start_byte
        if (start and self.text[start - 1] not in " \t\n;&|()") or "\n" in self.source(node):
            self.error("a comment was not understood")


def _wordlike(node: Node) -> bool:
    kind = node.type
    return kind in WORDS or (kind in OPEN_WORDS and not node.is_named)


HANDLERS: dict[str, Callable[[Walker, Node, Scope, int], None]] = {}
