"""What single programs do, beyond their name: network, code, directories; and the table of all rules.

A rule adds reasons and returns True when the general treatment in `judge` would add nothing useful.
"""

from __future__ import annotations

import re

from ..shell import Command
from . import programs
from .files import awk, copies, disk, find, json_query, outputs, pager, pattern_first, permissions, rm, sed, tar
from .git import git
from .judge import Judge, Rule, has, letters, plain, shown, subcommand, value
from .programs import locate
from .services import (
    CLOUD,
    HELM,
    KUBECTL,
    TERRAFORM,
    crontab,
    database,
    docker,
    github,
    packages,
    runs_package,
    service,
)

METADATA = re.compile(
    r"169\.254\.169\.254|metadata\.google\.|100\.100\.100\.200|fd00:ec2:|2852039166|0xa9fea9fe", re.IGNORECASE
).search
_REMOTE = re.compile(r"(?:[\w.-]+@)?[\w.-]+:(?!\\)|rsync://|.*::").match


def rsync(judge: Judge, command: Command) -> bool:
    words = plain(command)
    if has(command, "--delete", "--delete-after", "--delete-before", "--remove-source-files", "--delete-excluded"):
        judge.add("destroys", f"`{shown(command)}` deletes files")
    if any(_REMOTE(word.text) for word in words):
        judge.network = True
        judge.add("sends-network", f"`{shown(command)}` copies files to or from another machine")
        judge.paths(command, judge.read)
        return True
    return copies(judge, command)


def curl(judge: Judge, command: Command) -> bool:
    local = judge.only_local(command)
    judge.network = judge.network or not local
    method = next((word.text.upper() for word in value(command, "-X", "--request")), "GET")
    body = has(
        command, "-d", "--data", "--data-raw", "--data-binary", "--data-urlencode", "--json", "-F", "--form", "-T",
        "--upload-file", "--form-string", "--post-data", "--post-file", "--body-data", "--body-file", "--data-ascii",
    ) or bool(value(command, "-d", "-F", "-T"))  # fmt: skip
    # `-H @file` sends the file, `--variable` takes one into the address
    body = body or has(command, "--variable", "--url-query")
    body = body or any(word.text.startswith("@") for word in value(command, "-H", "--header"))
    if (body or method not in {"GET", "HEAD", "OPTIONS"}) and not local:
        judge.add("sends-network", f"`{shown(command)}` sends data over the network")
    else:
        judge.add("reads-network", f"`{shown(command)}` reads from the network")
    if any(METADATA(word.text) for word in command.arguments):
        judge.secrets = True
        judge.add("secret-read", f"`{shown(command)}` asks for the machine's credentials")
    keys = {word.text for word in value(command, "--key", "--cert", "--cacert", "-E")}
    targets = value(
        command, "-o", "--output", "-O", "--output-document", "-P", "--directory-prefix", "--output-dir", "-D", "-c"
    )
    if command.name == "curl":
        targets = [word for word in targets if not word.text.startswith(("http", "-"))]
    for word in targets:
        judge.write(word, command)
        judge.downloads.add(word.text.rpartition("/")[2])
    for word in command.arguments:
        if "://" in word.text:
            judge.downloads.add(word.text.partition("?")[0].rpartition("/")[2])
        if word.text not in keys and word not in targets:
            judge.read(word, command)
    for word in value(command, "-K", "--config"):
        judge.add("sends-network", f"`{shown(command)}` takes its options from {word.text}")
    judge.downloads.discard("")
    judge.downloads.discard("-")
    return True


def netcat(judge: Judge, command: Command) -> bool:
    judge.network = judge.network or not judge.only_local(command)
    hands_over = letters(command, "e") or has(command, "--exec", "--sh-exec", "-c", "--lua-exec")
    hands_over = hands_over or any(
        re.search(r"(?:EXEC|SYSTEM|SHELL):", word.text, re.IGNORECASE) for word in command.arguments
    )
    if hands_over:
        judge.add("reverse-shell", f"`{shown(command)}` connects a program to the network")
    return False


def ssh(judge: Judge, command: Command) -> bool:
    judge.network = True
    judge.add(
        "remote-command" if command.name == "ssh" else "sends-network", f"`{shown(command)}` reaches another machine"
    )
    keys = {word.text for word in value(command, "-i", "-F", "-o")}
    for word in command.arguments:
        if word.text not in keys and not _REMOTE(word.text):
            judge.read(word, command)
    return True


def interpreter(judge: Judge, command: Command) -> bool:
    """Inline code is looked at as text; a file of code counts as the project's."""
    texts = [word.text for word in command.arguments if len(word.text) > 3 and not word.text.startswith("-")]
    texts.extend(item.target.text for item in command.redirects if item.operator.startswith("<<") and item.target)
    inline = letters(command, "ceErpn") or has(
        command, "--eval", "--print", "-Command", "-EncodedCommand", "-command", "/c"
    )
    inline = inline or any(item.operator.startswith("<<") for item in command.redirects)
    code = "\n".join(texts)
    if inline and programs.CODE_SOCKET(code) and programs.CODE_SHELL(code):
        judge.add("reverse-shell", f"`{shown(command)}` connects a shell to the network")
    if inline and programs.CODE_FETCH(code) and programs.CODE_RUN(code):
        judge.add("fetch-and-run", f"`{shown(command)}` runs code it fetches")
    if has(command, "-EncodedCommand", "-enc", "-e") and command.name.lower().startswith(("pwsh", "powershell")):
        judge.add("decode-and-run", f"`{shown(command)}` runs encoded code")
    if inline and programs.CODE_DANGER(code):
        judge.add("inline-code", f"`{shown(command)}` runs code that deletes, starts programs or connects")
    if any("://" in word.text for word in plain(command)[:2]) and not inline:
        judge.add("fetch-and-run", f"`{shown(command)}` runs code from the network")
    if inline:
        judge.add("runs-code", f"`{shown(command)}` runs inline code")
        secrets_in(judge, code)
        return True
    return False


def secrets_in(judge: Judge, code: str) -> None:
    """Paths that stand as strings in inline code."""
    for match in re.finditer(r"['\"]((?:~|/|\.)[^'\"\s]{1,200})['\"]", code[:20_000]):
        judge.judge_read(locate(match[1], judge.workspace))


def source(judge: Judge, command: Command) -> bool:
    judge.add("runs-code", f"`{shown(command)}` runs a script in this shell")
    judge.paths(command, judge.read)
    words = {word.text.rpartition("/")[2] for word in command.arguments}
    if words & judge.downloads:
        judge.add("fetch-and-run", f"`{shown(command)}` runs what was fetched just before")
    return True


def directory(judge: Judge, command: Command) -> bool:
    """cd and pushd: later relative paths start there."""
    words = [word for word in plain(command) if word.text]
    target = ("~" if command.name == "cd" else "") if not words else judge.resolved(words[-1])
    if not target or target == "-":
        return True
    if target[:1] in {"$", "`"} and not target.startswith(("$HOME", "${HOME}", "$PWD", "${PWD}")):
        judge.add("moves-out", f"{target} is only known when it runs")
        return True
    place = locate(target, judge.workspace, judge.base)
    judge.base = target if target[:1] in {"/", "~", "$"} else f"{judge.base}/{target}" if judge.base else target
    if not place.inside or not locate(target, judge.workspace).inside:
        judge.add("moves-out", f"{target} is outside the workspace")
    return True


def variables(judge: Judge, command: Command) -> bool:
    """env without a command, printenv: whatever the environment holds is printed."""
    judge.secrets = True
    return False


def clock(judge: Judge, command: Command) -> bool:
    if has(command, "-s", "--set"):
        judge.add("system", f"`{shown(command)}` sets the clock")
    return False


def openssl(judge: Judge, command: Command) -> bool:
    if subcommand(command) == "s_client":
        judge.network = True
        judge.add("raw-connection", f"`{shown(command)}` opens a network connection")
    for target in value(command, "-out", "-keyout"):
        judge.write(target, command)
    return False


RULES: dict[str, Rule] = {
    **dict.fromkeys(programs.PACKAGE_MANAGERS, packages),
    **dict.fromkeys(programs.DATABASES, database),
    **dict.fromkeys(programs.names("rm rimraf rd del grm"), rm),
    **dict.fromkeys(programs.names("chmod chown chgrp setfacl chattr"), permissions),
    **dict.fromkeys(
        programs.names(
            "dd mkfs mke2fs wipefs blkdiscard shred fdisk sfdisk sgdisk gdisk parted mkswap newfs badblocks hdparm"
        )
        | {
            f"mkfs.{kind}"
            for kind in ("ext2", "ext3", "ext4", "xfs", "btrfs", "vfat", "fat", "ntfs", "f2fs", "exfat", "minix")
        },
        disk,
    ),
    **dict.fromkeys(programs.names("grep egrep fgrep zgrep rg ag ack ugrep"), pattern_first),
    **dict.fromkeys(programs.names("awk gawk mawk nawk"), awk),
    **dict.fromkeys(programs.names("cp gcp ln install ditto"), copies),
    **dict.fromkeys(programs.names("tar gtar bsdtar"), tar),
    **dict.fromkeys(programs.names("curl wget wget2 http https httpie xh aria2c axel"), curl),
    **dict.fromkeys(programs.names("nc ncat netcat nc.openbsd nc.traditional socat"), netcat),
    **dict.fromkeys(programs.names("ssh scp sftp"), ssh),
    **dict.fromkeys(programs.names("docker podman nerdctl docker-compose"), docker),
    **dict.fromkeys(programs.names("terraform tofu terragrunt"), TERRAFORM),
    **dict.fromkeys(programs.names("kubectl oc k9s"), KUBECTL),
    **dict.fromkeys(programs.names("aws gcloud az gsutil"), CLOUD),
    **dict.fromkeys(programs.names("systemctl launchctl service rc-service"), service),
    **dict.fromkeys(programs.names("cd pushd"), directory),
    **dict.fromkeys(programs.names("env printenv"), variables),
    **dict.fromkeys((".", "source"), source),
    "helm": HELM,
    "gh": github,
    "git": git,
    "find": find,
    "gfind": find,
    "sed": sed,
    "gsed": sed,
    "rsync": rsync,
    "crontab": crontab,
    "openssl": openssl,
    "date": clock,
    "sort": outputs("-o", "--output"),
    "uniq": outputs(first_operand=1),
    "tree": outputs("-o"),
    "xxd": outputs(first_operand=1),
    "base64": outputs("-o", "--output"),
    "less": pager,
    "more": pager,
    "jq": json_query,
    "yq": json_query,
    "npx": runs_package,
    "pnpx": runs_package,
    "bunx": runs_package,
    "uvx": runs_package,
}


class Rules(dict[str, Rule]):
    """The table, with interpreters found under any version number."""

    def get(self, name: str, default: Rule | None = None) -> Rule | None:  # type: ignore[override]
        found = super().get(name, default)
        if found is None and name[:1].isalpha() and programs.INTERPRETERS(name):
            found = self[name] = interpreter
        return found
