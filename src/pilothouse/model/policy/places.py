"""Where a path points, as far as its text shows; which names no wildcard matches; which words are not paths.

Everything is lexical: `.` and `..` are resolved segment by segment and compared with the workspace. A symbolic link
cannot be seen from here; callers that know the disk resolve paths first. A path that cannot be placed (`~`, a variable,
a URL, control characters) is outside. The pattern of `grep` and the message of `git commit` are text: one word of a
command at most is excused as such, and none where it is uncertain which one it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ..risk.programs import locate
from .globs import PathGlob, generous, is_wild, segments_match

_DRIVE = re.compile(r"[A-Za-z]:")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/{2,}")
_VARIABLE = re.compile(r"\$(?:[A-Z{(]|env:)|%[A-Za-z]\w*%|`")
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Place(NamedTuple):
    """A path without `.` and `..`: below the workspace (root `""`), or from another root (`"/"`, `"c:"`, `"?"`)."""

    root: str
    parts: tuple[str, ...]

    @property
    def inside(self) -> bool:
        return self.root == ""


def _walk(parts: list[str], start: tuple[str, ...] = ()) -> tuple[int, tuple[str, ...]]:
    """How far a list of segments climbs above where it starts, and where it ends from there."""
    climbed, reached = 0, list(start)
    for part in parts:
        if part == "..":
            if reached:
                reached.pop()
            else:
                climbed += 1
        elif part not in ("", "."):
            reached.append(part)
    return climbed, tuple(reached)


def _absolute(path: str) -> Place | None:
    if _DRIVE.match(path):
        return Place(path[:2].lower(), _walk(path[2:].replace("\\", "/").split("/"))[1])
    if path.startswith("\\\\"):
        return Place("/", _walk(path.replace("\\", "/").split("/"))[1])
    if path.startswith("/"):
        return Place("/", _walk(path.split("/"))[1])
    return None


def place(path: str, workspace: str | None) -> Place:
    """Where a path points. Without a workspace only a relative path that does not climb is inside."""
    if _CONTROL.search(path) or _SCHEME.match(path) or path.startswith("~"):
        return Place("?", (path,))
    base = _absolute(workspace) if workspace else None
    if base is not None and not base.parts:
        base = None  # the root as a workspace would put every file inside
    there = _absolute(path)
    if there is None:
        parts = path.replace("\\", "/").split("/") if base and base.root != "/" else path.split("/")
        climbed, reached = _walk(parts)
        if not climbed:
            return Place("", reached)
        if base is None:
            return Place("?", ("..", *reached))
        # it may come back, but only if it starts where we think it does
        return Place(base.root, _walk(parts, base.parts)[1])
    if base is not None and there.root == base.root and there.parts[: len(base.parts)] == base.parts:
        return Place("", there.parts[len(base.parts) :])
    return there


def places(path: str, workspace: str | None) -> list[Place]:
    """Every place a path in a tool's input may mean.

    A backslash is a letter to one system and a separator to another, and some tools expand variables or percent signs.
    """
    found = [place(path, workspace)]
    if "\\" in path:
        found.append(place(path.replace("\\", "/"), workspace))
    if _ESCAPED.search(path):
        found.append(place(_ESCAPED.sub(lambda code: chr(int(code.group(1), 16)), path), workspace))
    if _VARIABLE.match(path):
        found.append(Place("?", (path,)))
    return found


# Names -------------------------------------------------------------------------------------------------------------

# credentials that risk alone does not count, because a person may well look at them
_KEPT = re.compile(r"(?:^|/)(?:\.docker|\.config/gcloud|\.terraformrc|\.credentials[^/]*|tokens?\.(?:json|txt))(?:/|$)")
# a file here is run, or tells a program what to run, without anybody asking for it
_RUNS = re.compile(
    r"""
    \.git | \.hg | \.svn | \.jj | \.husky | \.githooks | \.claude | \.codex | \.cursor | \.gemini | \.opencode
    | \.mcp\.json
    | \.vscode | \.idea | \.zed | \.devcontainer | \.envrc | \.direnv | \.bashrc | \.bash_.* | \.zsh.* | \.profile
    | \.gitconfig | \.gitmodules | sitecustomize\.py | usercustomize\.py | .+\.pth
    """,
    re.VERBOSE,
)
_SYSTEM = frozenset({"etc", "proc", "sys", "dev", "root", "boot", "var", "run", "private", "library", "system"})
# names that a shell's wildcard may stand for, one of each kind
_SAMPLES = (
    "id_rsa", "id_ed25519", "server.pem", "private.key", "store.p12", "credentials", "prod.env", "prod.tfvars",
    "terraform.tfstate",
)  # fmt: skip


def sensitive(parts: tuple[str, ...]) -> str | None:
    """The last segment of a path that names a credential or lies among credentials; `None` for any other."""
    path, plain = "/".join(parts), "/".join(_plain(part) for part in parts)
    secret = locate(path).secret or locate("/" + path).secret or locate(plain).secret or _KEPT.search(plain)
    return parts[-1] if parts and secret else None


def guarded(parts: tuple[str, ...]) -> str | None:
    """The segment whose files are run by themselves (hooks, settings of agents and editors), if there is one."""
    found = next((part for part in parts if _RUNS.fullmatch(_plain(part))), None)
    return found or (parts[-1] if parts and locate("/".join(parts)).autorun else None)


def _plain(part: str) -> str:
    # Windows drops trailing dots and blanks and reads what follows a colon as a stream of the same file
    return generous(part).partition(":")[0].rstrip(". ")


def is_system(where: Place) -> bool:
    return where.root != "/" or not where.parts or generous(where.parts[0]) in _SYSTEM


def may_expand_to_secret(segment: str) -> bool:
    """Whether a shell wildcard in one segment may stand for a credential's name."""
    return segment.startswith(".") or any(segments_match((segment,), (name,)) for name in _SAMPLES)


# Patterns ----------------------------------------------------------------------------------------------------------


def path_covered(glob: PathGlob, path: str, workspace: str | None, *, writing: bool) -> str | None:
    """Why a pattern does not cover a path; `None` when it does, and the empty string when it does not even match.

    A wildcard covers only what is inside the workspace, no credential, and in writing nothing that runs by itself.
    What lies outside must be named up to a directory below the root, a credential by its own name.
    """
    answers = [_cover(alternative, path, workspace, writing=writing) for alternative in glob.alternatives]
    return None if None in answers else max((answer for answer in answers if answer), default="")


def _cover(pattern: tuple[str, ...], path: str, workspace: str | None, *, writing: bool) -> str | None:
    worst: str | None = None
    for where in places(path, workspace):
        literal = tuple(_literal_head(pattern))
        base = place("/".join(literal) or ("/" if literal else ""), workspace) if literal else Place("", ())
        tail = pattern[len(literal) :]
        if tail and tail[-1] == "**":
            tail = (*tail, "*")  # what is below a directory, not the directory
        below = where.parts[len(base.parts) :]
        if where.root != base.root or where.parts[: len(base.parts)] != base.parts or not segments_match(tail, below):
            return ""
        if not base.inside and tail and (base.root == "?" or not base.parts):
            worst = "the path is outside the workspace"
        worst = worst or _refusal(below, writing=writing)
    return worst


def _literal_head(pattern: tuple[str, ...]) -> Iterator[str]:
    for segment in pattern:
        if is_wild(segment):
            return
        yield segment


def _refusal(parts: tuple[str, ...], *, writing: bool) -> str | None:
    if name := sensitive(parts):
        return f"`{name}` may hold credentials"
    if writing and (name := guarded(parts)):
        return f"files in `{name}` take effect by themselves"
    return None


def path_free(path: str, workspace: str | None, *, writing: bool) -> str | None:
    """Why a rule without a pattern does not cover a path; `None` when it does."""
    for where in places(path, workspace):
        if not where.inside and (writing or workspace is not None or is_system(where)):
            return "the path is outside the workspace"
        if refusal := _refusal(where.parts, writing=writing):
            return refusal
    return None


def path_denied(glob: PathGlob, path: str, workspace: str | None) -> bool:
    """Whether a pattern denies a path: compared generously, at any depth if it has no slash, and with all below it."""
    return any(
        _denies(alternative, where, workspace) for alternative in glob.alternatives for where in places(path, workspace)
    )


def _denies(pattern: tuple[str, ...], where: Place, workspace: str | None) -> bool:
    literal = tuple(_literal_head(pattern))
    parts = tuple(generous(part) for part in where.parts)
    if len(pattern) == 1:
        return segments_match(("**", generous(pattern[0]), "**"), parts)
    base = place("/".join(literal) or "/", workspace) if literal else Place(where.root, ())
    whole = (*(generous(part) for part in base.parts), *(generous(part) for part in pattern[len(literal) :]), "**")
    if base.inside and not where.inside and workspace is None:
        return segments_match(("**", *whole), parts)  # where the workspace begins is not known
    return where.root == base.root and segments_match(whole, parts)


def path_readings(word: str) -> Iterator[str]:
    """Every text in a word of a command that some program may take for a path.

    The word itself, what follows `=`, `:`, `,` or `@` in it, and what an option letter may have attached to it.
    """
    yield word
    for found in re.finditer(r"[=:,@]", word):
        rest = word[found.end() :]
        before = word[: found.end()]
        if rest and not (rest.startswith("//") and found.group() == ":" and not before.lower().endswith("file:")):
            yield rest
    # a long option has its value behind `=`, a short one may have it attached
    if word.startswith("-") and not word.startswith("--") and (attached := re.search(r"[~/]|\.\.", word)):
        yield word[attached.start() :]


# the first operand of these is a pattern or a program text, unless an option gave one already
PATTERN_FIRST = frozenset({"grep", "egrep", "fgrep", "rg", "ag", "ack", "sed", "awk", "jq"})
_GIT_SPEAKERS = frozenset({"commit", "tag", "merge", "stash", "notes"})
SEARCHING = frozenset({"grep", "egrep", "fgrep", "rg", "ag", "ack"})
# options of theirs: with a number behind them, with nothing behind them, with a pattern for file names
_TAKES_NUMBER = re.compile(r"-[A-Za-z]*[ABCm]|--(?:(?:after|before)-)?context|--max-count")
_TAKES_WORD = {"rg": re.compile(r"-[A-Za-z]*[ABCmtTjM]|--(?:(?:after|before)-)?context|--max-\w+|--type(?:-not)?")}
_SWITCHES = re.compile(
    r"-[abchHiIlLnNoPqrRsSuUvVwWxyzZEFG0-9]+|--(?:ignore-case|recursive|line-number|word-regexp|count|files-with-matches"
    r"|files-without-match|(?:with|no)-filename|invert-match|only-matching|quiet|silent|colou?r|(?:no-)?heading|multiline"
    r"|(?:fixed|basic)-(?:strings|regexp)|(?:perl|extended)-regexp|smart-case|pcre2|json|no-ignore|no-messages|text|column)"
)
_FILE_CHOOSERS = re.compile(r"-g|--(?:i?glob|include|exclude-from|ignore-file|type-add)")
# generously: options may be abbreviated, and their value attached
_PATTERN_GIVEN = re.compile(r"-[A-Za-z0-9]*[ef].*|--[ref].*", re.DOTALL)


def is_pattern(name: str, texts: tuple[str, ...], index: int) -> bool:
    position = 1
    while position < len(texts) and texts[position].startswith("-") and texts[position] != "-":
        option = texts[position]
        if option == "--":
            position += 1
            break
        if name in SEARCHING and _TAKES_WORD.get(name, _TAKES_NUMBER).fullmatch(option):
            position += 2
        elif name not in SEARCHING or "=" in option or _SWITCHES.fullmatch(option):
            position += 1
        else:
            return False  # the next word may be its value
    return index == position and not any(_PATTERN_GIVEN.fullmatch(text) for text in texts[1:])


def is_message(texts: tuple[str, ...], index: int) -> bool:
    """What `git commit -m` is given is text, whatever it looks like."""
    if texts[1] not in _GIT_SPEAKERS:
        return False
    return re.fullmatch(r"-[a-z]*m|--message", texts[index - 1]) is not None or texts[index].startswith("--message=")


def chooses_files(texts: tuple[str, ...], index: int) -> str:
    """The value of an option that says which files are searched."""
    option, equals, value = texts[index].partition("=")
    if equals and _FILE_CHOOSERS.fullmatch(option):
        return value
    if found := re.fullmatch(r"-g(.+)", texts[index], re.DOTALL):
        return found[1]
    return texts[index] if _FILE_CHOOSERS.fullmatch(texts[index - 1]) else ""


def hidden_glob(value: str) -> bool:
    """Whether a pattern for file names asks for hidden files that may be credentials; `!…` leaves files out."""
    last = value.rpartition("/")[2]
    if value.startswith("!") or last[:1] not in {".", "{", "["}:
        return False
    return sensitive((last,)) is not None or re.search(r"[*?\[{]", last) is not None
