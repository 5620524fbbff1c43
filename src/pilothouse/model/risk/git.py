"""What a git command does to the work, the history and the settings."""

from __future__ import annotations

import re

from ..shell import Command, Word
from .judge import Judge, shown
from .programs import names

_GLOBAL_VALUES = names("-C -c --git-dir --work-tree --namespace --exec-path --super-prefix --config-env")
READS = names(
    "status log diff show blame annotate ls-files ls-tree rev-parse rev-list describe shortlog grep cat-file"
    " merge-base name-rev for-each-ref count-objects whatchanged show-ref show-branch var version help"
    " check-ignore check-attr check-mailmap cherry range-diff diff-tree diff-files diff-index verify-commit"
    " verify-tag fsck diagnose --version --help get-tar-commit-id ls-remote-local"
)
NETWORK = names("fetch pull clone ls-remote")
CHANGES = names(
    "add commit merge cherry-pick revert mv rm init apply am checkout switch restore stash tag branch worktree"
    " submodule notes bisect sparse-checkout read-tree write-tree commit-tree hash-object update-index mktree"
    " pack-refs repack maintenance lfs archive bundle format-patch request-pull difftool mergetool gui citool"
    " instaweb rerere reset clean"
)
_RUNNING_KEYS = re.compile(
    r"core\.(?:hookspath|sshcommand|fsmonitor|pager|editor|askpass|gitproxy|worktree|attributesfile)|alias\..*|credential\..*"
    r"|url\..*\.(?:push)?insteadof|filter\..*|diff\..*|merge\..*\.driver|include(?:if\..*)?\.path|gpg\..*|sequence\.editor"
    r"|http\..*|https\..*|uploadpack\..*|receive\..*|protocol\..*|pager\..*|remote\..*\.(?:url|pushurl|uploadpack|receivepack)"
    r"|init\.templatedir|submodule\..*\.update|browser\..*|man\..*|interactive\.difffilter|user\.signingkey|safe\.directory"
).fullmatch
_QUIET_SETTINGS = re.compile(
    r"core\.pager=(?:cat|less)?|color\..*|pager\.\w+=(?:false|cat)|diff\.(?:renames|noprefix).*"
).fullmatch


_FILE_NAME = re.compile(r"(?:.*/)?[^/]*[^/.]\.[A-Za-z]\w{0,5}").fullmatch


def git(judge: Judge, command: Command) -> bool:
    words = command.arguments
    verb, rest = _verb(judge, command)
    text = shown(command)
    flags = {word.text for word in rest}
    letters = {letter for flag in flags if re.fullmatch(r"-[A-Za-z]+", flag) for letter in flag[1:]}
    rule = _VERBS.get(verb)
    if verb == "" and not words:
        return True
    if rule is not None:
        rule(judge, text, [word.text for word in rest], flags, letters)
    if verb in NETWORK or verb == "push":
        judge.network = True
        judge.add("reads-network" if verb != "push" else "changes-repository", f"`{text}` talks to the remote")
    elif verb in CHANGES:
        if not _lists(verb, [word.text for word in rest], flags, letters):
            judge.add("changes-repository", f"`{text}` changes the repository or its files")
    elif verb not in READS and rule is None:
        judge.add("runs-program", f"`{text}` may be an alias or an extension that runs anything")
    if verb in {"grep", "diff", "log", "show"} and (
        flags & {"--ext-diff", "--textconv"} or any(f.startswith(("-O", "--open-files-in-pager")) for f in flags)
    ):
        judge.add("dynamic-shell", f"`{text}` makes git start another program")
    for word in rest:
        if word.text.startswith(("--output=", "--output-directory=")):
            judge.write(Word(word.text.partition("=")[2], word.static, word.glob, word.raw), command)
        elif word.text in {"--output", "--output-directory"}:
            judge.add("changes-files", f"`{text}` writes a file")
        elif word.text.startswith("ext::"):
            judge.add("hidden-command", f"`{text}` makes git run a program as the remote")
    _paths(judge, command, verb, rest)
    return True


def _verb(judge: Judge, command: Command) -> tuple[str, tuple[Word, ...]]:
    """The subcommand and what follows it; settings in front of it are judged on the way."""
    words = command.arguments
    index = 0
    while index < len(words) and words[index].text.startswith("-"):
        text = words[index].text
        if text in {"--version", "--help"}:
            return text, ()
        setting = ""
        if text == "-c" and index + 1 < len(words):
            setting = words[index + 1].text
        elif text.startswith("-c") and "=" in text:
            setting = text[2:]
        elif text.startswith(("--exec-path=", "--config-env")):
            judge.add("environment-code", f"`{shown(command)}` makes git look for programs elsewhere")
        if setting and _RUNNING_KEYS(setting.partition("=")[0].lower()) and not _QUIET_SETTINGS(setting.lower()):
            judge.add("git-setting", f"`{setting}` can make git run programs")
        if text in {"-C", "--git-dir", "--work-tree"} and index + 1 < len(words):
            judge.read(words[index + 1], command)
        elif text.startswith(("--git-dir=", "--work-tree=")):
            judge.read(words[index], command)
        index += 2 if text in _GLOBAL_VALUES else 1
    if index >= len(words):
        return "", ()
    return (words[index].text if words[index].static else "?"), words[index + 1 :]


def _paths(judge: Judge, command: Command, verb: str, rest: tuple[Word, ...]) -> None:
    skip = False
    for word in rest:
        text = word.text
        if skip:
            skip = False
            continue
        if text in {"-m", "--message", "--author", "--date", "--grep", "-S", "-G", "--format", "--pretty", "--title"}:
            skip = True
            continue
        if text.startswith("-") or "://" in text or (verb == "grep" and word is rest[0]) or not word.static:
            continue
        if (
            verb in {"push", "fetch", "pull", "clone", "remote", "ls-remote", "config", "log", "rev-parse"}
            and text[:1] not in "/~."
        ):
            continue
        if verb in {"init", "clone", "archive", "worktree"}:
            judge.write(word, command)
        elif verb in {"add", "commit"}:
            # adding a file publishes it to the history, it does not print it
            if text[:1] in "/~." and text not in {".", "./"}:
                judge.read(word, command)
        else:
            judge.read(word, command)


def _lists(verb: str, words: list[str], flags: set[str], letters: set[str]) -> bool:
    """Whether a subcommand that can change things only shows them here."""
    operands = [word for word in words if not word.startswith("-")]
    if verb == "branch":
        return not operands or bool(
            flags & {"--list", "-l", "--contains", "--merged", "--no-merged", "--show-current", "-a", "-r", "-v", "-vv"}
            and not letters & set("dDmMcCfut")
        )
    if verb == "tag":
        return not operands or bool(letters & {"l", "n"}) or "--list" in flags
    if verb in {"stash", "worktree", "submodule", "notes", "sparse-checkout", "lfs", "bisect"}:
        return bool(operands) and operands[0] in {"list", "show", "status", "summary", "log", "ls-files", "view"}
    return verb == "apply" and bool(flags & {"--check", "--stat"})


def _push(judge: Judge, text: str, words: list[str], flags: set[str], letters: set[str]) -> None:
    forced = bool(flags & {"--force", "--mirror", "--prune", "--delete"} or letters & {"f", "d"})
    forced = forced or any(flag.startswith("--force-with-lease") or flag == "--force-if-includes" for flag in flags)
    if forced or any(word.startswith(("+", ":")) for word in words):
        judge.add("rewrites-history", f"`{text}` overwrites or deletes history at the remote")


def _reset(judge: Judge, text: str, words: list[str], flags: set[str], letters: set[str]) -> None:
    if flags & {"--hard", "--merge", "--keep"}:
        judge.add("discards-work", f"`{text}` throws away uncommitted changes")


def _clean(judge: Judge, text: str, words: list[str], flags: set[str], letters: set[str]) -> None:
    if not (letters & {"n"} or "--dry-run" in flags):
        judge.add("discards-work", f"`{text}` deletes files that git does not know")


def _checkout(judge: Judge, text: str, words: list[str], flags: set[str], letters: set[str]) -> None:
    if (
        "--" in words
        or "." in words
        or flags & {"--force", "--discard-changes", "--ours", "--theirs"}
        or letters & {"f", "B", "C"}
    ):
        judge.add("discards-work", f"`{text}` throws away uncommitted changes")
        return
    operands = [word for word in words if not word.startswith("-")]
    creates = bool(letters & {"b", "c", "t"}) or "--track" in flags
    # `git checkout file` and `git checkout commit file` overwrite the file
    if any(_FILE_NAME(word) for word in operands) or (len(operands) > 1 and not creates):
        judge.add("discards-work", f"`{text}` overwrites files with an earlier state")


def _restore(judge: Judge, text: str, words: list[str], flags: set[str], letters: set[str]) -> None:
    if not (flags & {"--staged"} or "S" in letters) or flags & {"--worktree"} or "W" in letters:
        judge.add("discards-work", f"`{text}` throws away uncommitted changes")


def _branch(judge: Judge, text: str, words: list[str], flags: set[str], letters: set[str]) -> None:
    if letters & set("DdMf") or flags & {"--delete", "--force"}:
        judge.add("rewrites-history", f"`{text}` deletes or moves a branch")


def _tag(judge: Judge, text: str, words: list[str], flags: set[str], letters: set[str]) -> None:
    if letters & set("df") or flags & {"--delete", "--force"}:
        judge.add("rewrites-history", f"`{text}` deletes or moves a tag")


def _stash(judge: Judge, text: str, words: list[str], flags: set[str], letters: set[str]) -> None:
    if words and words[0] in {"drop", "clear"}:
        judge.add("discards-work", f"`{text}` throws away stashed work")


def _commit(judge: Judge, text: str, words: list[str], flags: set[str], letters: set[str]) -> None:
    if "--amend" in flags:
        judge.add("rewrites-history", f"`{text}` rewrites the last commit")


def _rewrite(judge: Judge, text: str, words: list[str], flags: set[str], letters: set[str]) -> None:
    judge.add("rewrites-history", f"`{text}` rewrites history")


def _rebase(judge: Judge, text: str, words: list[str], flags: set[str], letters: set[str]) -> None:
    if not flags & {"--abort", "--continue", "--skip", "--show-current-patch"}:
        judge.add("rewrites-history", f"`{text}` rewrites history")
    else:
        judge.add("changes-repository", f"`{text}` goes on with a rebase")


def _gc(judge: Judge, text: str, words: list[str], flags: set[str], letters: set[str]) -> None:
    pruning = any(flag.startswith("--prune") for flag in flags) or "--aggressive" in flags
    judge.add("rewrites-history" if pruning else "changes-repository", f"`{text}` removes objects from the repository")


def _reflog(judge: Judge, text: str, words: list[str], flags: set[str], letters: set[str]) -> None:
    if words and words[0] in {"expire", "delete", "drop"}:
        judge.add("rewrites-history", f"`{text}` removes the record of earlier states")


def _worktree(judge: Judge, text: str, words: list[str], flags: set[str], letters: set[str]) -> None:
    if words and words[0] == "remove" and (flags & {"--force"} or "f" in letters):
        judge.add("discards-work", f"`{text}` deletes a working tree")


def _config(judge: Judge, text: str, words: list[str], flags: set[str], letters: set[str]) -> None:
    operands = [word for word in words if not word.startswith("-")]
    if operands and operands[0] in {"set", "unset", "get", "list", "edit", "add", "rename-section", "remove-section"}:
        mode, operands = operands[0], operands[1:]
    else:
        mode = ""
    reading = (
        mode in {"get", "list"}
        or letters & {"l"}
        or flags & {"--list", "--get", "--get-all", "--get-regexp", "--get-urlmatch"}
    )
    if reading or (
        not mode and len(operands) < 2 and not flags & {"--unset", "--unset-all", "--edit", "-e", "--remove-section"}
    ):
        return
    if flags & {"--global", "--system"} or any(flag.startswith(("--file", "-f")) for flag in flags):
        judge.add("git-setting", f"`{text}` changes settings of other repositories")
    elif operands and _RUNNING_KEYS(operands[0].lower()):
        judge.add("git-setting", f"`{text}` changes a setting that can make git run programs")
    else:
        judge.add("changes-repository", f"`{text}` changes the repository's settings")


def _remote(judge: Judge, text: str, words: list[str], flags: set[str], letters: set[str]) -> None:
    operands = [word for word in words if not word.startswith("-")]
    if operands and operands[0] in {
        "remove",
        "rm",
        "set-url",
        "add",
        "rename",
        "set-head",
        "prune",
        "update",
        "set-branches",
    }:
        judge.add("changes-repository", f"`{text}` changes the remotes")


def _bisect(judge: Judge, text: str, words: list[str], flags: set[str], letters: set[str]) -> None:
    if words[:1] == ["run"]:
        judge.add("runs-code", f"`{text}` runs a program for each commit")


def _symbolic(judge: Judge, text: str, words: list[str], flags: set[str], letters: set[str]) -> None:
    operands = [word for word in words if not word.startswith("-")]
    if len(operands) > 1 or letters & {"d"}:
        judge.add("changes-repository", f"`{text}` moves HEAD")


def _publish(judge: Judge, text: str, words: list[str], flags: set[str], letters: set[str]) -> None:
    judge.network = True
    judge.add("publishes", f"`{text}` sends changes to others")


_VERBS = {
    "push": _push,
    "reset": _reset,
    "clean": _clean,
    "checkout": _checkout,
    "switch": _checkout,
    "restore": _restore,
    "branch": _branch,
    "tag": _tag,
    "stash": _stash,
    "commit": _commit,
    "rebase": _rebase,
    "filter-branch": _rewrite,
    "filter-repo": _rewrite,
    "replace": _rewrite,
    "update-ref": _rewrite,
    "prune": _rewrite,
    "fast-import": _rewrite,
    "gc": _gc,
    "reflog": _reflog,
    "worktree": _worktree,
    "config": _config,
    "remote": _remote,
    "bisect": _bisect,
    "symbolic-ref": _symbolic,
    "send-email": _publish,
    "svn": _publish,
    "p4": _publish,
    "daemon": _publish,
}
