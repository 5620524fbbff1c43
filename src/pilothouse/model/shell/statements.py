"""How each kind of statement is read: one function per node type of the grammar, gathered in a table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .grammar import EXPRESSIONS, REDIRECTS, SEPARATORS, WORDS
from .nouns import Command, Draft, Scope, Word
from .redirects import redirect
from .tree import HANDLERS, Walker

if TYPE_CHECKING:
    from tree_sitter import Node


def command(walker: Walker, node: Node, scope: Scope, depth: int) -> None:
    walker.edges(node, node.children)
    draft = Draft(scope)
    subs: list[Node] = []
    walker.simple(node.children, draft, subs)
    walker.emit(draft, subs, depth)


def redirected(walker: Walker, node: Node, scope: Scope, depth: int) -> None:
    """A statement with redirections behind it; they hold for every command of a group."""
    children = node.children
    walker.edges(node, children)
    head = children[0] if children and children[0].type not in REDIRECTS else None
    rest = children[1:] if head is not None else children
    draft = Draft(scope)
    subs: list[Node] = []
    if head is not None and head.type == "command":
        walker.edges(head, head.children)
        walker.simple([*head.children, *rest], draft, subs)
        walker.emit(draft, subs, depth)
        return
    walker.simple(rest, draft, subs)
    if head is None:
        walker.emit(draft, subs, depth)
        return
    if draft.words:
        walker.error("words follow a group of commands")
    inner = scope._replace(redirects=(*draft.redirects, *scope.redirects))
    walker.statement(head, head.type, inner, depth + 1)
    walker.substitutions(subs, scope, depth)
    for following, outer in draft.after:
        walker.statement(following, following.type, outer, depth + 1)


def pipeline(walker: Walker, node: Node, scope: Scope, depth: int) -> None:
    walker.features.add("pipeline")
    # a pipeline that continues a here-document's line begins with the operator
    inner, end = scope, -1
    walker.edges(node, node.children)
    for child in node.children:
        start = child.start_byte
        if end >= 0 and end != start:
            walker.gap(end, start)
        end = child.end_byte
        if not child.is_named:
            if child.type not in SEPARATORS:
                walker.error(f"the shell text has an operator that was not understood: {child.type}")
            continue
        before = len(walker.state.commands)
        walker.statement(child, child.type, inner, depth + 1)
        if child.type != "comment":
            inner = scope._replace(piped=True, feed=_output(walker.state.commands[before:]))


def _output(commands: list[Command]) -> Word | None:
    """What a simple command prints, where that can be read off it."""
    if len(commands) != 1 or commands[0].wrappers or any(item.writes for item in commands[0].redirects):
        return None
    found = commands[0]
    if found.name == "cat" and len(found.words) == 1:
        bodies = [item.target for item in found.redirects if item.operator in {"<<", "<<-", "<<<"}]
        return bodies[-1] if bodies else None
    if found.name not in {"echo", "printf"}:
        return None
    texts = [word.text for word in found.arguments]
    # options and backslashes change what is printed: then it is not known
    if any(text.startswith("-") for text in texts[:1]) or any("\\" in text or "%" in text for text in texts):
        return Word(" ".join(texts), False)
    return Word(" ".join(texts), all(word.static for word in found.arguments))


def grouped(*names: str, feature: str = "") -> None:
    """Statements inside these nodes run under a context of that name."""

    def read(walker: Walker, node: Node, scope: Scope, depth: int) -> None:
        walker.features.add(feature)
        walker.sequence(node, scope.inside(feature), depth)

    for name in names:
        HANDLERS[name] = read


def plain(walker: Walker, node: Node, scope: Scope, depth: int) -> None:
    walker.sequence(node, scope, depth)


def negated(walker: Walker, node: Node, scope: Scope, depth: int) -> None:
    """`! command`; without a blank between them the mark belongs to the command's name."""
    children = node.children
    if len(children) > 1 and children[0].end_byte == children[1].start_byte:
        walker.error("an exclamation mark was not understood")
    walker.sequence(node, scope, depth)


def compound(walker: Walker, node: Node, scope: Scope, depth: int) -> None:
    """`{ …; }`, or `(( … ))` which the grammar files under the same name."""
    if node.children and node.children[0].type == "((":
        walker.features.add("arithmetic")
        walker.evaluated(node)
        walker.expression(node, scope, depth)
    else:
        children = node.children
        if len(children) > 1 and children[0].end_byte == children[1].start_byte:
            walker.error("a brace was not understood")
        walker.sequence(node, scope, depth)


def function(walker: Walker, node: Node, scope: Scope, depth: int) -> None:
    walker.features.add("function")
    inner = scope.inside("function")
    for child in node.children:
        if child.type in REDIRECTS:
            draft = Draft(scope)
            subs: list[Node] = []
            redirect(walker, child, draft, subs)
            inner = inner._replace(redirects=(*draft.redirects, *inner.redirects))
            walker.substitutions(subs, scope, depth)
    name, before = "", len(walker.state.commands)
    for child in node.children:
        if child.type == "word":
            name = walker.source(child)
        elif child.is_named and child.type not in REDIRECTS:
            walker.statement(child, child.type, inner, depth + 1)
    for found in walker.state.commands[before:]:
        # a function that starts itself more than once at the same time
        if found.name == name and (found.piped or "background" in found.context):
            walker.features.add("fork-bomb")


def takes_effect(name: str) -> bool:
    """Whether a variable is of the kind that programs look at: setting it is not a matter of the script alone."""
    return not name.islower() or name.startswith("npm_config") or name.endswith("_proxy")


MAX_VALUES = 8
"""Values of a loop's variable up to which its body is read once for each."""


def for_loop(walker: Walker, node: Node, scope: Scope, depth: int) -> None:
    """`for NAME in WORDS`: where all words are known, so is the variable, as long as nothing else sets it."""
    walker.features.add("loop")
    inner = scope.inside("loop")
    name = next((walker.source(child) for child in node.children if child.type == "variable_name"), "")
    values: list[Word] = []
    for child in node.children:
        if child.type in WORDS and child.type != "variable_name":
            values.append(walker.word(child, []))
    if name and takes_effect(name):
        draft = Draft(inner)
        draft.assignments.append((name, Word("", False)))
        walker.record(draft)
    # a second mention of the bare name may give it another value: another loop, `read`, an assignment
    once = len(re.findall(rf"(?<![$\w{{]){re.escape(name)}(?!\w)", walker.text)) == 1
    used = f'"${name}"' in walker.source(node) or f'"${{{name}}}"' in walker.source(node)
    known = name and used and once and all(word.static or _plain_glob(word) for word in values)
    if not known or not 0 < len(values) <= MAX_VALUES or len(scope.bound) > 1:
        walker.sequence(node, inner, depth)
        return
    for value in values:
        walker.sequence(node, inner._replace(bound=(*scope.bound, (name, value))), depth)


def _plain_glob(word: Word) -> bool:
    return word.glob and not any(one in word.raw for one in "$`{}()~\\\"'")


def c_style_for(walker: Walker, node: Node, scope: Scope, depth: int) -> None:
    walker.features.update(("loop", "arithmetic"))
    for child in node.children:
        if child.type in {"do_group", "compound_statement"}:
            walker.statement(child, child.type, scope.inside("loop"), depth + 1)
        elif child.is_named:
            subs: list[Node] = []
            walker.evaluated(child)
            walker.within(child, subs)
            walker.substitutions(subs, scope, depth)


def declaration(walker: Walker, node: Node, scope: Scope, depth: int) -> None:
    """`export A=b`, `declare -x A`, `unset A`: the builtin with its operands as words and as assignments."""
    children = node.children
    draft = Draft(scope)
    subs: list[Node] = []
    walker.edges(node, children)
    name = walker.source(children[0])
    draft.words.append(Word(name, True, False, name))
    end = children[0].end_byte
    for child in children[1:]:
        if child.start_byte == end:
            walker.error("two parts of a command are not separated")
        walker.gap(end, child.start_byte, in_line=True)
        end = child.end_byte
        if child.type == "variable_assignment":
            key, value = walker.assignment(child, subs)
            draft.assignments.append((key, value))
            draft.words.append(Word(f"{key}={value.text}", value.static, value.glob, walker.source(child)))
        else:
            walker.simple([child], draft, subs)
    walker.emit(draft, subs, depth)


def assignments(walker: Walker, node: Node, scope: Scope, depth: int) -> None:
    draft = Draft(scope)
    subs: list[Node] = []
    parts = [node] if node.type == "variable_assignment" else node.children
    walker.simple(parts, draft, subs)
    walker.emit(draft, subs, depth)


def test(walker: Walker, node: Node, scope: Scope, depth: int) -> None:
    """`[ … ]` and `[[ … ]]`: a command of its own whose words may substitute."""
    children = node.children
    raw = walker.source(node)
    name = children[0].type if children else "["
    draft = Draft(scope)
    draft.words.append(Word(name, True, False, name))
    draft.words.append(Word(raw[len(name) :].strip(), False, False, raw))
    if name == "((":
        walker.features.add("arithmetic")
    elif raw[len(name) : len(name) + 1] not in {" ", "\t", "\n"} or raw[-len(name) - 1] not in " \t\n":
        # without blanks around them the brackets belong to a word
        walker.error("a bracket was not understood")
    elif name == "[" and _ends_test(walker, node):
        walker.error("a test in single brackets was not understood")
    if name == "((" or _COUNTS(raw):
        walker.evaluated(node)
    walker.record(draft)
    walker.expression(node, scope, depth)


# these take an operand for arithmetic or for the name of a variable with a subscript
_COUNTS = re.compile(r"\s-(?:eq|ne|lt|le|gt|ge|v|R)\s").search


def _ends_test(walker: Walker, node: Node) -> bool:
    """Whether something stands in `[ … ]` that would end the command in bash, where `[` is a program like any other."""
    if "\n" in walker.source(node).replace("\\\n", ""):
        return True
    stack = list(node.children[1:-1])
    while stack:
        here = stack.pop()
        if here.type in _ENDING:
            return True
        if here.type in EXPRESSIONS:
            stack.extend(here.children)
    return False


_ENDING = frozenset({"&&", "||", ";", "|", "&", "<", ">", "(", ")", "\n"})


def case_item(walker: Walker, node: Node, scope: Scope, depth: int) -> None:
    """Patterns up to `)`, then statements."""
    walker.sequence(node, scope.inside("case"), depth)


HANDLERS.update(
    {
        "program": plain,
        "command": command,
        "redirected_statement": redirected,
        "pipeline": pipeline,
        "list": plain,
        "negated_command": negated,
        "compound_statement": compound,
        "do_group": plain,
        "if_statement": plain,
        "elif_clause": plain,
        "else_clause": plain,
        "case_statement": plain,
        "case_item": case_item,
        "function_definition": function,
        "c_style_for_statement": c_style_for,
        "for_statement": for_loop,
        "declaration_command": declaration,
        "unset_command": declaration,
        "variable_assignment": assignments,
        "variable_assignments": assignments,
        "test_command": test,
        "comment": Walker.comment,
    }
)
grouped("while_statement", feature="loop")
grouped("subshell", feature="subshell")
