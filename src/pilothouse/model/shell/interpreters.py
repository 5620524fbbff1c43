"""Programs that run text: shells, and interpreters whose code hands strings to a shell.

The text is an argument, a here-document, or the output of another command. If it is not in the script at all, the
script is marked as running unknown code. The rows of `table` tell a wrapper's own options from the command it runs;
where it is uncertain which word begins the inner command, the script gets an error.
"""

from __future__ import annotations

import re

from .nouns import Draft, Redirect, Scope, Word
from .table import CODE_OPERAND, CODE_OPTIONS, FED, PREFIXES, SHELL_VALUES, Prefix, names
from .tree import Walker

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=").match
UNKNOWN = Word("", False, False, "")


def prefixed(walker: Walker, draft: Draft, name: str) -> bool:
    return take_off(walker, draft, PREFIXES[name], name, 1)


def take_off(walker: Walker, draft: Draft, spec: Prefix, label: str, start: int) -> bool:
    """Find where the inner command begins and go on with it."""
    words = draft.words
    i, script = options(walker, words, spec, label, start)
    if script is not None or i < 0:
        walker.record(draft) if i < 0 or spec.kept else None
        if script is not None:
            walker.nested(script, below(draft), label)
        return True
    if spec.assignments:
        i = assignments(draft, i)
    if spec.dashes:
        i = next((k + 1 for k in range(start, len(words)) if words[k].text == "--"), len(words))
    i += spec.operands
    if spec.scripts and i < len(words) and words[i].text in spec.scripts and i + 1 < len(words):
        walker.nested(words[i + 1], below(draft), label)
        return True
    if i >= len(words):
        walker.record(draft)
        return True
    if spec.kept:
        walker.record(draft)
    inner = words[i:]
    if spec.joined and len(inner) == 1:
        walker.nested(inner[0], below(draft), label)
        return True
    if spec.joined:
        text = " ".join(word.text for word in inner)
        walker.nested(Word(text, all(word.static for word in inner), False, text), below(draft), label)
        return True
    if spec.adds:
        inner = [placeholder(word) for word in inner]
        if not any(word.text in {"-I", "-J", "-i", "--replace"} or word.text.startswith("-I") for word in words[1:i]):
            inner.append(UNKNOWN)
    draft.words = inner
    draft.wrappers.append(label)
    return False


def options(walker: Walker, words: list[Word], spec: Prefix, label: str, i: int) -> tuple[int, Word | None]:
    """The index behind the wrapper's own options; -1 when it runs nothing; the script an option holds."""
    count = len(words)
    while i < count:
        word = words[i]
        text = word.text
        if text == "--":
            return i + 1, None
        if len(text) < 2 or text[0] != "-":
            # `env -` and `su -` are options, too
            if text == "-" and label in {"env", "su", "runuser"}:
                i += 1
                continue
            break
        name, equals, value = text.partition("=")
        if text in spec.scripts or name in spec.scripts:
            if equals:
                return i, Word(value, word.static, False, value)
            return (i, words[i + 1]) if i + 1 < count else (-1, None)
        if text in spec.stops:
            return -1, None
        if text in spec.values:
            i += 2
        elif text[1] == "-":
            if not equals and name not in spec.flags:
                if spec.unknown == "value":
                    i += 1
                elif spec.unknown == "error":
                    walker.error(f"an option of {label} was not understood: {text}")
            i += 1
        else:
            taken, script = _cluster(walker, words, spec, label, i)
            if taken < 0 or script is not None:
                return taken, script
            i += taken
    return i, None


def _cluster(walker: Walker, words: list[Word], spec: Prefix, label: str, i: int) -> tuple[int, Word | None]:
    """Short options in one word (`-nu`, `-n5`): how many words they take."""
    word = words[i]
    text = word.text
    if label == "nice" and text[1:].lstrip("-").isdigit():
        return 1, None
    if spec.unknown == "value":
        return (1 if text in spec.flags else 2 if len(text) == 2 else 1), None
    if text in spec.flags:
        return 1, None
    for position, letter in enumerate(text[1:], 1):
        option = "-" + letter
        rest = text[position + 1 :]
        if option in spec.scripts:
            if rest:
                return i, Word(rest, word.static, False, rest)
            return (i, words[i + 1]) if i + 1 < len(words) else (-1, None)
        if option in spec.stops:
            return -1, None
        if option in spec.values:
            return (1 if rest else 2), None
        if option in spec.flags:
            # options with an optional value attached (`xargs -i{}`, `sudo -E`)
            if option in {"-i", "-l", "-e"} and spec.adds:
                return 1, None
            continue
        if spec.unknown == "error":
            walker.error(f"an option of {label} was not understood: {text}")
        return 1, None
    return 1, None


def assignments(draft: Draft, i: int) -> int:
    words = draft.words
    while i < len(words) and _ASSIGNMENT(words[i].text):
        name, _, value = words[i].text.partition("=")
        draft.assignments.append((name, Word(value, words[i].static, False, value)))
        i += 1
    return i


def below(draft: Draft) -> Scope:
    """The scope of commands in a string that this command runs."""
    scope = draft.scope
    wrappers = (*scope.wrappers, *draft.wrappers)
    return scope._replace(wrappers=wrappers, redirects=(*draft.redirects, *scope.redirects))


def inner(walker: Walker, draft: Draft, words: list[Word], label: str) -> None:
    """Record a command that stands in the arguments of another."""
    if not words:
        return
    found = Draft(draft.scope._replace(feed=None))
    found.words = [placeholder(word) for word in words]
    found.redirects = draft.redirects
    found.wrappers = [*draft.wrappers, label]
    walker.unwrap(walker, found)


def placeholder(word: Word) -> Word:
    return Word(word.text, False, word.glob, word.raw) if "{}" in word.text else word


_CALLS = re.compile(
    r"""(?:\b(?:system|popen\d?|exec|execSync|execFileSync|execFile|spawn|spawnSync|call|run|check_output|check_call|Popen
        |getoutput|getstatusoutput|shell_exec|passthru|proc_open|capture2e?|capture3|os\.execute|io\.popen|qx)\s*\(?\s*
        |do\s+shell\s+script\s+|%x)
        \[?\s*(?:[rbf]?)(?P<quote>['"])(?P<text>(?:\\.|(?!(?P=quote)).){0,2000})(?P=quote)""",
    re.VERBOSE | re.DOTALL,
)
_AWK_PIPES = re.compile(r"""(?<!\|)\|&?\s*"(?P<text>(?:\\.|[^"\\]){0,2000})\"""", re.DOTALL)
_READ_FROM = re.compile(
    r"""(?P<quote>["'])(?P<text>(?:\\.|(?!(?P=quote)).){0,2000})(?P=quote)\s*\|\s*getline""", re.DOTALL
)
_AWK_RUNS = re.compile(r"\bsystem\s*\(|\|\s*&?\s*getline|\bprintf?\b[^|]*\|(?!\|)").search
MAX_CALLS = 64
_BACKTICKS = re.compile(r"`(?P<text>[^`]*)`|\bqx\s*[{(\[/](?P<more>[^})\]/]*)")
_BANG = re.compile(r"(?:^|[\s|:])!\s*(?P<text>.+)", re.DOTALL)


def shell(walker: Walker, draft: Draft, name: str) -> bool:
    """`sh -c TEXT`, or a shell that reads its script from standard input."""
    words = draft.words
    i, count = 1, len(words)
    from_input = False
    while i < count:
        text = words[i].text
        if text in {"--", "-"}:
            i += 1
            break
        if text in SHELL_VALUES:
            i += 2
            continue
        if not text.startswith(("-", "+")) or not words[i].static:
            break
        if text[0] == "-" and text[1:2] != "-" and "c" in text:
            rest = [word for word in words[i + 1 :] if not (word.static and word.text[:1] in {"-", "+"})]
            if not rest:
                break
            walker.nested(rest[0], below(draft), f"{name} -c")
            return True
        from_input = from_input or (text[1:2] != "-" and "s" in text)
        i += 1
    if i < count and not from_input:
        script = words[i]
        if not script.static and script.raw.startswith(("<(", "$(", "`")):
            walker.dynamic(f"{name} runs text that is only known when it runs")
        elif script.text in {"/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}:
            walker.dynamic(f"{name} runs what it reads from its input")
        walker.record(draft)
        return True
    walker.record(draft)
    fed = standard_input(draft)
    if fed is not None:
        scope = below(draft)
        walker.nested(fed, scope._replace(redirects=tuple(item for item in scope.redirects if item.writes)), name)
    elif draft.scope.piped and not reads_file(draft):
        walker.dynamic(f"{name} runs what it reads from its input")
    return True


def standard_input(draft: Draft) -> Word | None:
    """The text a command reads, where a here-document, a here-string or `echo` gives it."""
    for item in reversed(draft.redirects):
        if item.operator in {"<<", "<<-", "<<<"}:
            return item.target
    for item in draft.scope.redirects:
        if item.operator in {"<<", "<<-", "<<<"}:
            return item.target
    return draft.scope.feed


def reads_file(draft: Draft) -> bool:
    return any(item.operator == "<" and _is_file(item) for item in draft.redirects)


def _is_file(item: Redirect) -> bool:
    return item.target is not None and item.target.static


def su(walker: Walker, draft: Draft, name: str) -> bool:
    """`su user -c TEXT`: options may stand behind the user."""
    words = draft.words
    for i in range(1, len(words) - 1):
        if re.fullmatch(r"-[a-z]*c|--command|--session-command", words[i].text):
            walker.nested(words[i + 1], below(draft), name)
            return True
    for word in words[1:]:
        option, _, value = word.text.partition("=")
        if option in {"--command", "--session-command"}:
            walker.nested(Word(value, word.static, False, value), below(draft), name)
            return True
    return (
        take_off(walker, draft, _RUNUSER, name, 1)
        if name == "runuser" and "-u" in {w.text for w in words}
        else shell_of(walker, draft, name)
    )


_RUNUSER = Prefix(values=names("-u --user -g --group -G --supp-group -s --shell -w"), unknown="flag")


def shell_of(walker: Walker, draft: Draft, name: str) -> bool:
    """A login shell: it may still read its script from standard input."""
    walker.record(draft)
    fed = standard_input(draft)
    if fed is not None:
        walker.nested(fed, below(draft), name)
    elif draft.scope.piped:
        walker.dynamic(f"{name} runs what it reads from its input")
    return True


def source(walker: Walker, draft: Draft, name: str) -> bool:
    walker.record(draft)
    if any(not word.static and word.raw.startswith(("<(", "$(", "`", "/dev/")) for word in draft.words[1:2]):
        walker.dynamic(f"{name} runs text that is only known when it runs")
    elif draft.words[1:2] and draft.words[1].text in {"/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}:
        walker.dynamic(f"{name} runs what it reads from its input")
    return True


def code(walker: Walker, draft: Draft, name: str) -> bool:
    """Interpreters: commands that their code hands to a shell in plain strings."""
    walker.record(draft)
    words = draft.words
    base = (
        name
        if name in CODE_OPTIONS or name in CODE_OPERAND
        else "python"
        if name.startswith("py")
        else name.rstrip("0123456789.w")
    )
    carriers = CODE_OPTIONS.get(base, frozenset())
    texts: list[str] = []
    for i in range(1, len(words)):
        text = words[i].text
        if i + 1 < len(words) and (text in carriers or _clustered(text, carriers)):
            texts.append(words[i + 1].text)
        elif any(text.startswith(option) and len(text) > len(option) and len(option) == 2 for option in carriers):
            texts.append(text[2:])
        elif text.startswith("+") and base in {"vim", "vi", "nvim", "ex", "gvim"}:
            texts.append(text[1:])
    if base in CODE_OPERAND:
        texts.extend(word.text for word in words[1:])
    if not texts and base not in CODE_OPERAND:
        texts.extend(_fed_code(walker, draft, name, base))
    for text in texts:
        _commands_in_code(walker, draft, text, base)
    return True


def _fed_code(walker: Walker, draft: Draft, name: str, base: str) -> list[str]:
    """The code an interpreter reads from its input, as far as it is known."""
    fed = standard_input(draft)
    if fed is not None:
        return [fed.text]
    arguments = draft.words[1:]
    if base in FED and any(word.raw.startswith("<(") for word in arguments):
        walker.dynamic(f"{name} runs text that is only known when it runs")
    unnamed = base in FED and all(word.text.startswith("-") for word in arguments)
    if unnamed and draft.scope.piped and not reads_file(draft):
        walker.dynamic(f"{name} runs what it reads from its input")
    return []


def _clustered(text: str, carriers: frozenset[str]) -> bool:
    """`perl -lne CODE`: the last letter of a cluster is the carrier."""
    return len(text) > 2 and text[0] == "-" and text[1] != "-" and text[1:].isalpha() and "-" + text[-1] in carriers


def _commands_in_code(walker: Walker, draft: Draft, text: str, base: str) -> None:
    scope = below(draft)
    label = base
    found = [match["text"] for match in _CALLS.finditer(text)]
    if base in CODE_OPERAND:
        found.extend(match["text"] for match in _READ_FROM.finditer(text))
        found.extend(match["text"] for match in _AWK_PIPES.finditer(text))
    if base in {"perl", "ruby", "php"}:
        found.extend(match["text"] or match["more"] or "" for match in _BACKTICKS.finditer(text))
    if base in {"vim", "vi", "nvim", "ex", "gvim", "gdb"}:
        bang = _BANG.search(text)
        if bang:
            found.append(bang["text"])
        elif text.startswith("shell "):
            found.append(text[6:])
    if base in CODE_OPERAND and not found and _AWK_RUNS(text):
        walker.dynamic(f"{base} runs commands that it puts together itself")
    if len(found) > MAX_CALLS:
        walker.error(f"{base} runs too many commands")
    for command in found[:MAX_CALLS]:
        walker.nested(command.replace('\\"', '"').replace("\\'", "'"), scope, label)
