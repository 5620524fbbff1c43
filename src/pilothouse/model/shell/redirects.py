"""Redirections and here-documents.

A here-document must end where bash ends it, and what follows it on its line is a command like any other.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .grammar import HIDDEN_SUBSTITUTION, SEPARATORS, WORDS
from .nouns import Draft, Redirect, Scope, Word

if TYPE_CHECKING:
    from tree_sitter import Node

    from .tree import Walker

_FD_VARIABLE = re.compile(r"\{\w+\}").fullmatch


def attached(walker: Walker, draft: Draft, start: int) -> int | None:
    """The descriptor in front of a redirection where the grammar took it for a word."""
    raw = draft.words[-1].raw if draft.words else ""
    position = start
    if not raw or walker.text[position - len(raw) : position] != raw:
        return None
    if _FD_VARIABLE(raw):
        walker.error("a redirection into a variable was not understood")
    if not (raw.isascii() and raw.isdigit()):
        return None
    draft.words.pop()
    return _number(raw)


def redirect(walker: Walker, node: Node, draft: Draft, subs: list[Node], fd: int | None = None) -> None:
    """Read one redirection; words the grammar counts to it after its target are arguments of the command."""
    if node.type == "heredoc_redirect":
        heredoc(walker, node, draft, subs)
        return
    operator, target = "", None
    rest: list[Node] = []
    walker.edges(node, node.children)
    end = -1
    for child in node.children:
        kind, start = child.type, child.start_byte
        if end >= 0 and end != start:
            walker.gap(end, start, in_line=True)
        if kind == "file_descriptor":
            fd = _number(walker.source(child))
            if fd is None:
                # the grammar takes the option in `head -5>file` for a descriptor
                draft.words.append(walker.reader.word(start, child.end_byte, {}))
                attached(walker, draft, child.end_byte)
        elif not child.is_named and not operator:
            operator = kind
        elif target is None and not operator.endswith("&-"):
            target = walker.word(child, subs)
        elif end == start and not rest and target is not None:
            walker.error("the target of a redirection was not understood")
        else:
            rest.append(child)
        end = child.end_byte
    found = Redirect(operator, target, fd)
    draft.redirects.append(found)
    if found.writes:
        walker.features.add("redirect-write")
    if rest:
        walker.simple(rest, draft, subs)


def heredoc(walker: Walker, node: Node, draft: Draft, subs: list[Node]) -> None:
    walker.features.add("heredoc")
    operator, delimiter, quoted = "<<", "", False
    body, ended = Word("", True, False, ""), False
    fd = None
    after: list[Node] = []
    loose: list[Node] = []
    for child in node.children:
        kind = child.type
        if kind in {"<<", "<<-"}:
            operator = kind
        elif kind == "file_descriptor":
            fd = _number(walker.source(child))
        elif kind == "heredoc_start":
            raw = walker.source(child)
            quoted = not raw.isalnum() and any(c in raw for c in "'\"\\")
            delimiter = walker.reader.word(child.start_byte, child.end_byte, {}).text
        elif kind == "heredoc_body":
            body = heredoc_body(walker, child, subs, quoted=quoted)
        elif kind == "heredoc_end":
            ended = True
            heredoc_end(walker, child, body.raw, delimiter, tabs=operator == "<<-")
        elif kind in WORDS or kind in {"file_redirect", "herestring_redirect", "heredoc_redirect"}:
            loose.append(child)
        else:
            after.append(child)
    if not ended:
        walker.error("a here-document does not end")
    draft.redirects.append(Redirect(operator, body, fd))
    if loose:
        simple_loose(walker, loose, draft, subs)
    after_heredoc(walker, after, draft)


def simple_loose(walker: Walker, nodes: list[Node], draft: Draft, subs: list[Node]) -> None:
    for node in nodes:
        walker.simple([node], draft, subs)


def after_heredoc(walker: Walker, nodes: list[Node], draft: Draft) -> None:
    """What follows `<<EOF` on its line: the grammar keeps it inside the redirection."""
    scope = draft.scope
    for index, node in enumerate(nodes):
        if not node.is_named:
            if node.type not in SEPARATORS:
                walker.error(f"the shell text has an operator that was not understood: {node.type}")
            continue
        inner = scope._replace(redirects=())
        operator = node.children[0] if node.type == "pipeline" and node.children else nodes[index - 1]
        if operator.type in {"|", "|&"}:
            pending(walker, node, inner, draft)
        else:
            draft.after.append((node, inner))


def pending(walker: Walker, node: Node, scope: Scope, draft: Draft) -> None:
    walker.features.add("pipeline")
    feed = draft.redirects[-1].target if draft.words and draft.words[0].text == "cat" else None
    draft.after.append((node, scope._replace(piped=True, feed=feed)))


def heredoc_body(walker: Walker, node: Node, subs: list[Node], *, quoted: bool) -> Word:
    raw = walker.source(node)
    if quoted:
        return Word(raw, True, False, raw)
    spans: dict[int, int] = {}
    walker.collect(node, spans, subs)
    rest, position = [], node.start_byte
    for start in sorted(spans):
        rest.append(walker.text[position:start])
        position = spans[start]
    rest.append(walker.text[position : node.end_byte])
    if HIDDEN_SUBSTITUTION("".join(rest)):
        walker.error("a here-document was not understood")
    return Word(raw, not spans and "\\" not in raw, False, raw)


def heredoc_end(walker: Walker, node: Node, body: str, delimiter: str, *, tabs: bool) -> None:
    """The end must be where bash sees it: the first line that is the delimiter and nothing else."""
    start, end = node.start_byte, node.end_byte
    line_start = walker.text.rfind("\n", 0, start) + 1
    before = walker.text[line_start:start]
    newline = walker.text.find("\n", end)
    after = walker.text[end : newline if newline >= 0 else len(walker.text)]
    lines = body.split("\n")
    if tabs:
        lines = [line.lstrip("\t") for line in lines]
        before = before.lstrip("\t")
    if before or after or walker.source(node) != delimiter or delimiter in lines[:-1]:
        walker.error("the end of a here-document is unclear")


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else None
