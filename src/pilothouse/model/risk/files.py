"""What programs do to files: deleting, permissions, disks, text tools, copying and packing."""

from __future__ import annotations

import re
from itertools import pairwise

from ..shell import Command, Word
from .judge import PRIVILEGED, Judge, Rule, has, letters, plain, shown, value
from .programs import locate

_SED_RUNS = re.compile(
    r"(?:^|[;{}\n\d$/])\s*e(?:\s|$)|s(?P<d>[^\w\s\\])(?:\\.|(?!(?P=d)).)*(?P=d)(?:\\.|(?!(?P=d)).)*(?P=d)[gpiImM\d]*e",
    re.DOTALL,
).search
_SED_WRITES = re.compile(r"(?:^|[;{}\n\d$/gpiI])\s*[wW]\s*(?P<path>[^\s;}]+)").finditer
_AWK_WRITES = re.compile(r">\s*\"(?P<path>[^\"]+)\"").finditer
_NUMBERED = re.compile(r"-[A-Za-z]*[ABCm]|--(?:(?:after|before)-)?context|--max-count").fullmatch
_TYPED = re.compile(r"-[A-Za-z]*[tTj]|--type(?:-not)?").fullmatch
_GLOBBED = re.compile(r"-g|--i?glob|--include").fullmatch
_SETS_ID = re.compile(r"0?[2467]\d{3}|.*[+=][rwx]*s.*").fullmatch
_RECURSIVE = re.compile(r"-[A-Za-z]*[rR][A-Za-z]*|--recursive").fullmatch


def rm(judge: Judge, command: Command) -> bool:
    recursive = any(_RECURSIVE(word.text) for word in command.arguments) or command.name in {"rimraf", "rd"}
    if has(command, "--no-preserve-root"):
        judge.add("destroys-system", f"`{shown(command)}` may delete the whole system")
    tops(judge, command, recursive=recursive)
    return False


def permissions(judge: Judge, command: Command) -> bool:
    tops(judge, command, recursive=any(_RECURSIVE(word.text) for word in command.arguments), root_refused=False)
    return False


def tops(judge: Judge, command: Command, *, recursive: bool, root_refused: bool = True) -> None:
    """A recursive change of a whole home, disk or system directory.

    `rm -r /` itself is refused by rm unless told otherwise, so only with other rights does it count as the end of the
    system; `/*` is not refused.
    """
    privileged = any(name in PRIVILEGED for name in command.wrappers)
    if not recursive:
        return
    for word in plain(command):
        for place in judge.place(word):
            if place is None or not place.top:
                continue
            if place.root and root_refused and not privileged:
                continue
            judge.add("destroys-system", f"`{shown(command)}` reaches all of {place.path}")


def disk(judge: Judge, command: Command) -> bool:
    """dd, mkfs and others that write to whatever they are given."""
    judge.add("destroys", f"`{shown(command)}` overwrites data")
    for word in command.arguments:
        text = judge.resolved(word).rpartition("=")[2]
        if command.name == "dd" and word.text.startswith("if="):
            judge.read(Word(text, word.static, word.glob, text), command)
        elif locate(text, judge.workspace).device:
            judge.add("device-write", f"`{shown(command)}` writes to the disk {text}")
        elif command.name == "dd" and word.text.startswith("of="):
            judge.write(Word(text, word.static, word.glob, text), command)
    return True


def find(judge: Judge, command: Command) -> bool:
    deletes = has(command, "-delete")
    runs_rm = any(word.text in {"rm", "shred", "unlink"} for word in command.arguments)
    if deletes:
        judge.add("destroys", f"`{shown(command)}` deletes what it finds")
    starts: list[Word] = []
    for word in command.arguments:
        if word.text.startswith(("-", "(", "!")):
            break
        starts.append(word)
    for word in starts:
        judge.read(word, command)
        for place in judge.place(word):
            if place is not None and place.top and (deletes or runs_rm):
                judge.add("destroys-system", f"`{shown(command)}` deletes in all of {place.path}")
    for target in value(command, "-fprint", "-fprint0", "-fls", "-fprintf"):
        judge.write(target, command)
    return True


def pattern_first(judge: Judge, command: Command) -> bool:
    """grep and its like: the first operand is a pattern, not a file, and so is the value of `-e`."""
    skipped = letters(command, "ef") or has(command, "--regexp", "--file", "--files")
    patterns = {word.text for word in value(command, "-e", "--regexp")}
    # the numbers behind `-A` and the types behind `-t` are neither pattern nor file; a pattern for names is like a file
    numbers = {
        id(after)
        for before, after in pairwise(command.arguments)
        if (_NUMBERED(before.text) and after.text.isdigit()) or (command.name == "rg" and _TYPED(before.text))
    }
    globs = {id(after) for before, after in pairwise(command.arguments) if _GLOBBED(before.text)}
    for word in command.arguments:
        if word.text.startswith("-"):
            if not word.text.startswith(("-e", "--regexp")):
                judge.read(word, command)
        elif id(word) in numbers:
            continue
        elif id(word) in globs:
            judge.read(word, command)
        elif not skipped:
            skipped = True
        elif word.text not in patterns:
            judge.read(word, command)
    return True


def sed(judge: Judge, command: Command) -> bool:
    if has(command, "-f", "--file"):
        judge.add("runs-code", f"`{shown(command)}` runs a script")
    scripts = value(command, "-e", "--expression")
    rest = plain(command)
    files = rest if scripts or has(command, "-f", "--file") else rest[1:]
    scripts = scripts or rest[:1]
    for script in scripts:
        if _SED_RUNS(script.text):
            judge.add("dynamic-shell", f"`{shown(command)}` runs commands from the text it edits")
        for match in _SED_WRITES(script.text):
            judge.write(Word(match["path"], True, False, match["path"]), command)
    in_place = has(command, "--in-place") or any(re.fullmatch(r"-[nEru]*i.*", word.text) for word in command.arguments)
    for word in files:
        if in_place:
            judge.write(word, command)
        else:
            judge.read(word, command)
    if in_place:
        judge.add("changes-files", f"`{shown(command)}` changes files in place")
    return True


def pager(judge: Judge, command: Command) -> bool:
    """less and more run commands given as `+!command`."""
    if any(word.text.startswith("+") and "!" in word.text for word in command.arguments):
        judge.add("hidden-command", f"`{shown(command)}` starts another program")
    return outputs("-o", "-O", "--log-file")(judge, command)


def json_query(judge: Judge, command: Command) -> bool:
    if any(re.search(r"\$ENV\b|\benv\b", word.text) for word in plain(command)[:1]):
        judge.secrets = True
        judge.add("reads-environment", f"`{shown(command)}` reads environment variables")
    return pattern_first(judge, command)


def awk(judge: Judge, command: Command) -> bool:
    if has(command, "-f", "--file"):
        judge.add("runs-code", f"`{shown(command)}` runs a script")
    rest = plain(command)
    for word in rest:
        for match in _AWK_WRITES(word.text):
            judge.write(Word(match["path"], True, False, match["path"]), command)
    if "inplace" in {word.text for word in command.arguments}:
        judge.add("changes-files", f"`{shown(command)}` changes files in place")
    for word in rest if has(command, "-f", "--file") else rest[1:]:
        judge.read(word, command)
    return True


def outputs(*options: str, first_operand: int | None = None) -> Rule:
    """Readers that write a file when an option names one."""

    def rule(judge: Judge, command: Command) -> bool:
        for target in value(command, *options):
            judge.write(target, command)
        if first_operand is not None:
            for target in plain(command)[first_operand:]:
                judge.write(target, command)
        return False

    return rule


def copies(judge: Judge, command: Command) -> bool:
    """cp, ln, install: the last operand is written, the others are read."""
    judge.add("changes-files", f"`{shown(command)}` creates or changes files")
    words = plain(command)
    targets = value(command, "-t", "--target-directory")
    for word in targets or words[-1:]:
        judge.write(word, command)
    for word in words if targets else words[:-1]:
        judge.read(word, command)
        if command.name == "ln" and any(place is not None and not place.inside for place in judge.place(word)):
            judge.add("outside-read", f"`{shown(command)}` makes a way out of the workspace")
    if any(_SETS_ID(mode.text) for mode in value(command, "-m", "--mode")):
        judge.add("permissions", f"`{shown(command)}` lets a program run with the rights of its owner")
    return True


def tar(judge: Judge, command: Command) -> bool:
    mode = command.words[1].text if len(command.words) > 1 else ""
    listing = has(command, "--list") or (
        "t" in mode and not any(letter in mode for letter in "xcru") and "=" not in mode
    )
    if listing:
        judge.paths(command, judge.read)
        return True
    judge.add("changes-files", f"`{shown(command)}` creates or changes files")
    creates = "c" in mode.partition("=")[0] or has(command, "--create")
    for word in value(command, "-C", "--directory", "-f", "--file"):
        judge.write(word, command)
    judge.paths(command, judge.read if creates else judge.write)
    return True
