"""Words that make a harmless program write, delete, run or send something; no wildcard stands for them.

A person who writes `sort *` thinks of reading, not of `sort -o file`. So each program has a row here, and a word of its
row is covered only by a pattern that spells it out (`sort -o *`). For a program without a row the wildcard trusts all
its options: who writes `foo *` trusts foo. A row may always grow; taking a word out needs a reason.

A row is a text of entries. `--name` is a long option, also abbreviated or with `=value`; `-x` a letter, also inside a
cluster such as `-vx`; `-name` a whole word (also `--name`, `-name=value`); `@name` the subcommand; `/expression` any
word in which the expression is found; `!` the first operand, whatever it is; `*` every word; `-` every option except
those listed with `+` behind it; `!!` every operand after the first. A row named by two words is a subcommand's, and
holds besides the program's own. The table itself is in `options`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from .options import TABLE


def names(text: str) -> frozenset[str]:
    """The blank-separated names in a text."""
    return frozenset(text.split())


def read_table(text: str) -> dict[str, str]:
    """The rows of a table: program, or program and subcommand, to its entries."""
    rows: dict[str, str] = {}
    heads: list[str] = []
    for line in text.split("\n"):
        if line.startswith(" "):
            for name in heads:
                rows[name] += " " + line.strip()
        elif line and not line.startswith("#"):
            programs, _, entries = line.partition(":")
            heads = programs.split(", ")
            rows.update(dict.fromkeys(heads, entries))
    return rows


SHARP = read_table(TABLE)

COVERED_SUBCOMMANDS: dict[str, frozenset[str]] = {
    # anything else may be an alias that runs a shell, rewrites history or publishes: it must be spelt out
    "git": names(
        """
        status log diff show branch tag blame annotate shortlog describe rev-parse rev-list ls-files ls-tree
        cat-file grep merge-base name-rev whatchanged add commit stash checkout switch fetch pull merge rebase
        cherry-pick revert mv remote reflog help version count-objects check-ignore check-attr diff-tree
        diff-index diff-files for-each-ref show-ref show-branch range-diff cherry fsck verify-commit verify-tag
        """
    ),
    # npm takes any unambiguous beginning of a name, cargo and docker run whatever plugin is installed under it
    "npm": names(
        """
        test t tst run run-script start stop restart install i add ci clean-install it install-test ls list ll
        la outdated audit view v info show why explain ping root prefix whoami dedupe ddp update up upgrade
        uninstall un remove prune fund doctor search help sbom query
        """
    ),
    "cargo": names(
        "build b check c test t bench doc d clippy fmt tree metadata update search version help fetch pkgid add"
    ),
    "go": names("build test vet fmt list mod doc version help"),
    "docker": names(
        "ps images logs inspect info version history top stats image container compose build pull events port search"
    ),
    "kubectl": names(
        "get describe logs version explain top api-resources api-versions cluster-info diff wait events completion"
        " options"
    ),
    "terraform": names("plan validate fmt show output version providers graph get init modules metadata"),
    "gh": names("pr issue run search status label org project browse help version completion"),
    "uv": names("sync add remove lock export tree pip venv build init version help format"),
}
"""Subcommands that a wildcard in their place covers, for programs where the rest is a wide field."""

SUBCOMMANDED = names(
    """
    git hg svn gh glab npm pnpm yarn bun deno cargo go pip pip3 uv poetry hatch pdm conda docker podman nerdctl
    docker-compose kubectl helm terraform tofu pulumi brew apt apt-get dotnet gem bundle composer mix swift
    rustup systemctl aws gcloud az heroku vercel fly flyctl firebase wrangler ruff pre-commit vagrant openssl
    """
)
"""Programs whose first operand says what is done; options in front of it must be spelt out."""
_HARMLESS_IN_FRONT = frozenset({"--no-pager", "-P", "--version", "--help", "-h", "-v", "-V", "--no-optional-locks"})
# options in front of a subcommand that take the next word
_TAKES_VALUE = names(
    """
    -C -c -R -H -n -f -o -s -p --git-dir --work-tree --namespace --exec-path --config-env --config
    --manifest-path --prefix --cwd --dir --directory --project --context --kubeconfig --cluster --user --host
    --log-level --file --profile --region --filter --color --repo --cache-dir --python --project-directory
    --env-file --server --token
    """
)

INTERPRETERS = names(
    """
    sh bash zsh dash ksh fish ash csh tcsh busybox python python2 python3 pypy pypy3 ipython node nodejs deno
    bun ts-node tsx ruby perl php lua Rscript R julia tclsh pwsh powershell osascript psql mysql mariadb sqlite3
    mongo mongosh redis-cli ed ex vi vim nvim view at batch ssh gdb lldb bc dc patch xargs parallel crontab sftp ftp
    telnet mail irb pry iex ghci jshell scala sbcl clisp guile racket swipl octave gnuplot maxima duckdb emacs
    """
)
"""Programs that, without an operand, take what to do from their standard input."""
ALWAYS_LISTENING = names(
    """
    psql mysql mariadb sqlite3 mongo mongosh redis-cli duckdb ed ex vi vim nvim view emacs at batch parallel gdb lldb
    dc crontab sftp ftp telnet iex ghci jshell sbcl octave gnuplot maxima
    """
)
"""Those of them that do so whatever their operands are."""

READERS = names(
    """
    cat head tail less more wc ls tree stat file du grep egrep fgrep rg ag find fd git diff cmp comm strings xxd
    od hexdump nl cut sort uniq md5sum sha1sum sha256sum shasum basename dirname realpath readlink test [ echo
    printf jq bat
    """
)
"""Programs that only look at the files they are given (their sharp words aside)."""

_ALIASES = {"pip3": "pip", "gawk": "awk", "mawk": "awk", "nawk": "awk", "gsed": "sed", "gfind": "find", "gtar": "tar",
            "bsdtar": "tar", "batcat": "bat", "egrep": "grep", "fgrep": "grep", "mariadb": "mysql", "gsort": "sort",
            "py.test": "pytest", "yarnpkg": "yarn", "vimdiff": "vim", "rvim": "vim", "gvim": "vim", "aptitude": "apt",
            "dnf": "apt", "yum": "apt", "hub": "git", "g": "git"}  # fmt: skip
_VERSIONED = re.compile(r"(python|pypy|pip|ruby|perl|php|lua|node|clang|gcc|g\+\+|bash)-?[\d.]+")

_PYTHONS = frozenset({"python", "python2", "python3", "pypy", "pypy3"})
_RUNNERS = frozenset({"npx", "bunx", "pnpx", "uvx"})
# a single dash introduces a whole word
_SINGLE_DASH = names("find go java gcc g++ clang cc terraform tofu nmap pdflatex swift")
# addresses with p, d, q or =, and substitutions with harmless flags, one or several
_SED_STEP = (
    r"(?:(?:\d+|\$|/[^/\\\n]*/)(?:,(?:\+?\d+|\$|/[^/\\\n]*/))?!?)?"
    r"(?:[pdq=]|s(?:/[^/\n]*/[^/\n]*/|\|[^|\n]*\|[^|\n]*\||#[^#\n]*#[^#\n]*#|,[^,\n]*,[^,\n]*,)[gpIi\d]*)"
)
_HARMLESS_SED = re.compile(rf"\s*{_SED_STEP}(?:\s*;\s*{_SED_STEP})*\s*;?\s*")
MAX_SEARCHED = 4096


class Row(NamedTuple):
    """The entries of one or more rows, by kind."""

    everything: bool
    first_operand: bool
    later_operands: bool
    letters: frozenset[str]
    longs: tuple[str, ...]
    harmless: frozenset[str]
    words: frozenset[str]
    subcommands: frozenset[str]
    expressions: tuple[re.Pattern[str], ...]
    only: frozenset[str] | None


@lru_cache(maxsize=1024)
def _row(program: str, subcommand: str) -> Row:
    entries = f"{SHARP.get(program, '')} {SHARP.get(f'{program} {subcommand}', '')}".split()
    rest, allowed = _split(entries)
    harmless = frozenset(entry[:-1] for entry in rest if re.fullmatch(r"--.+\?", entry))
    rest = [entry for entry in rest if not entry.endswith("?") or entry.startswith("/")]
    return Row(
        everything="*" in rest,
        first_operand="!" in rest,
        later_operands="!!" in rest,
        letters=frozenset(entry[1] for entry in rest if re.fullmatch(r"-[^-]", entry)),
        longs=tuple(entry for entry in rest if entry.startswith("--") and len(entry) > 2),
        harmless=harmless,
        words=frozenset(entry for entry in rest if re.fullmatch(r"-[^-].+|--", entry)),
        subcommands=frozenset(entry[1:] for entry in rest if entry.startswith("@")),
        expressions=tuple(re.compile(entry[1:]) for entry in rest if entry.startswith("/")),
        only=allowed,
    )


def _split(entries: list[str]) -> tuple[list[str], frozenset[str] | None]:
    """The entries of a row, and the options it lets through if it lets through only those."""
    if "-" not in entries:
        return entries, None
    plus = entries.index("+") if "+" in entries else len(entries)
    end = next((i for i in range(plus, len(entries)) if entries[i].startswith(("@", "/"))), len(entries))
    kept = entries[: entries.index("-")] + entries[end:]
    return kept, frozenset(entries[plus + 1 : end])


def known_name(program: str) -> str:
    """The table's name of a program, given as written."""
    name = program.rpartition("/")[2]
    if name in SHARP:
        return name
    if found := _VERSIONED.fullmatch(name):
        name = found.group(1)
    return _ALIASES.get(name, name)


def subcommand_index(program: str, words: tuple[str, ...]) -> int:
    """The position of the subcommand among a command's words (the program is 0); their number when there is none."""
    position = 1
    while position < len(words) and words[position].startswith(("-", "+")):
        position += 2 if words[position] in _TAKES_VALUE else 1
    return min(position, len(words))


def sharp_part(words: tuple[str, ...], index: int) -> str | None:
    """The part of a word that a pattern must spell out to cover it, or `None` when a wildcard may stand for it."""
    start = delegate(words)
    if start:
        return sharp_part(words[start:], index - start) if index > start else words[index]
    program, word = known_name(words[0]), words[index]
    if words[1:3] == ("compose", "logs") and word == "-f":
        return None  # to follow, not a file
    at = subcommand_index(program, words)
    row = _row(program, words[at] if at < len(words) else "")
    if row.everything or (row.first_operand and index == at) or (row.later_operands and _later(words, index)):
        return word
    if program in SUBCOMMANDED and index < at and word not in _HARMLESS_IN_FRONT:
        return word
    if index == at and _odd_subcommand(program, word, row):
        return word
    if row.only is not None and word.startswith("-") and word.partition("=")[0] not in row.only:
        return word
    if program == "git" and _GIT_RULES.get(words[at] if at < len(words) else "", _never)(words, index, at):
        return word
    if program == "sed" and _is_sed_script(words, index) and not _HARMLESS_SED.fullmatch(word):
        return word
    return _option(word, row, clustered=program not in _SINGLE_DASH) or _found(word, row)


# a file rather than a branch: `git checkout src/a.py` throws its changes away
_FILE_NAME = re.compile(r"[^/]*[^/.]\.[A-Za-z]\w{0,5}")
_OTHER_HOST = re.compile(r"(?!\.{0,2}/)[^/:]+:")


def _never(words: tuple[str, ...], index: int, at: int) -> bool:
    return False


def _operands(words: tuple[str, ...], at: int) -> list[int]:
    return [i for i in range(at + 1, len(words)) if not words[i].startswith("-")]


def _overwrites(words: tuple[str, ...], index: int, at: int) -> bool:
    """Whether a word of `git checkout` names a file, by its look or because a commit stands before it."""
    operands = _operands(words, at)
    if index not in operands:
        return False
    creates = any(re.fullmatch(r"-[a-z]*[bt]|--track", word) for word in words[at + 1 :])
    return _FILE_NAME.fullmatch(words[index].rpartition("/")[2]) is not None or (not creates and index != operands[0])


def _from_elsewhere(words: tuple[str, ...], index: int, at: int) -> bool:
    """Whether a word is the remote of `git fetch` and names another machine (`host:path`)."""
    return index in _operands(words, at)[:1] and _OTHER_HOST.match(words[index]) is not None


_GIT_RULES = {"checkout": _overwrites, "fetch": _from_elsewhere, "pull": _from_elsewhere, "push": _from_elsewhere}


def delegate(words: tuple[str, ...]) -> int:
    """Where the program begins that another one, which only looks it up, is told to run; 0 when there is none."""
    if len(words) > 2 and known_name(words[0]) in _PYTHONS and words[1] == "-m":
        return 2
    if len(words) > 1 and words[0] in _RUNNERS and not words[1].startswith("-"):
        return 1
    return 0


def _later(words: tuple[str, ...], index: int) -> bool:
    return not words[index].startswith("-") and any(not word.startswith("-") for word in words[1:index])


def takes_options(program: str) -> bool:
    """Whether a file name that begins with a dash could be a sharp option of a program."""
    row = _row(known_name(program), "")
    return bool(row.everything or row.letters or row.longs or row.words or row.only is not None)


def _odd_subcommand(program: str, word: str, row: Row) -> bool:
    covered = COVERED_SUBCOMMANDS.get(program)
    return word in row.subcommands or (covered is not None and word not in covered and not word.startswith("-"))


def _found(word: str, row: Row) -> str | None:
    # a very long word is not searched: nobody can read it either
    if row.expressions and len(word) > MAX_SEARCHED:
        return word
    return next((word for one in row.expressions if one.search(word)), None)


def _is_sed_script(words: tuple[str, ...], index: int) -> bool:
    given = [i + 1 for i, word in enumerate(words[:-1]) if i and re.fullmatch(r"-[A-Za-z]*e", word)]
    first = next((i for i, word in enumerate(words) if i and not word.startswith("-")), 0)
    return index in given if given else index == first


def _option(word: str, row: Row, *, clustered: bool) -> str | None:
    if word == "--":
        return word if "--" in row.words else None
    name, equals, _ = word.partition("=")
    if word.startswith("--"):
        if name in row.harmless:
            return None
        if any(long.startswith(name) for long in row.longs) or name[1:] in row.words or name in row.words:
            return name + equals
        return None
    if not word.startswith("-") or len(word) < 2:
        return None
    if name in row.words:
        return name + equals
    # -Wl,x and the like: a word of the row with its value attached
    if glued := next((entry for entry in row.words if len(entry) > 2 and word.startswith(entry)), None):
        return glued
    cluster = re.match(r"-[A-Za-z0-9:@.]+", word) if clustered else re.match(r"-.", word)
    sharp = next((i for i, one in enumerate(cluster.group()) if i and one in row.letters), 0) if cluster else 0
    return word[: sharp + 1] if sharp else None
