"""What package managers, containers, databases and tools for services elsewhere do."""

from __future__ import annotations

import re

from ..shell import Command
from . import programs
from .judge import Judge, Rule, has, letters, plain, shown, subcommand, value
from .programs import locate


def packages(judge: Judge, command: Command) -> bool:
    name, verb = command.name, subcommand(command)
    words = {word.text for word in command.arguments}
    text = shown(command)
    if not verb and (words <= programs.LISTS or not words):
        if name in {"yarn", "pnpm"} and not words:
            judge.add("installs-packages", f"`{text}` installs packages")
        return True
    if name in {"deno", "bun"} and any("://" in word.text for word in plain(command)[:3]):
        judge.add("fetch-and-run", f"`{text}` runs code from the network")
    if verb in programs.PUBLISHES or (name in {"gem", "nuget"} and verb == "push"):
        judge.add("publishes", f"`{text}` publishes or changes an account")
    elif name in programs.SYSTEM_MANAGERS and (
        verb in programs.REMOVES or words & {"-R", "-Rs", "-Rns", "--remove", "--purge"}
    ):
        judge.add("removes-packages", f"`{text}` removes packages from the system")
    elif name in programs.RUNNERS and verb in programs.RUNS:
        judge.add("runs-code", f"`{text}` runs code of the project")
    elif verb in programs.LISTS or (verb in {"config", "cache"} and words & {"list", "get", "ls", "dir"}):
        return True
    elif verb in {"exec", "dlx", "x"}:
        return runs_package(judge, command)
    elif verb in programs.INSTALLS or verb in programs.REMOVES or "-S" in words or "-U" in words or "-i" in words:
        judge.add("installs-packages", f"`{text}` changes packages")
    elif verb in {"config", "set"}:
        judge.add("outside-write", f"`{text}` changes settings outside the workspace")
    else:
        judge.add("runs-program", f"`{text}` may run code of the project")
    judge.paths(command, judge.read)
    return True


def runs_package(judge: Judge, command: Command) -> bool:
    """npx and its like: the package's program is judged by its name where that says enough."""
    judge.add("installs-packages", f"`{shown(command)}` runs a package from a registry")
    words = [word.text for word in plain(command)]
    words = words[1:] if words[:1] and words[0] in {"exec", "dlx", "x", "run"} else words
    known = programs.NAMED.get(words[0].partition("@")[0]) if words else None
    if known is not None and known[0] != "reads-network":
        judge.add(known[0], f"`{shown(command)}` {known[1]}")
    judge.paths(command, judge.read)
    return True


_CONTAINER_READS = programs.names(
    "ps images logs inspect version info stats top port diff history ls search events context"
)


def docker(judge: Judge, command: Command) -> bool:
    words = [word.text for word in plain(command)]
    verb = words[0] if words else ""
    group = verb in {
        "container",
        "image",
        "volume",
        "network",
        "system",
        "builder",
        "compose",
        "buildx",
        "swarm",
        "stack",
        "service",
        "node",
        "secret",
        "config",
    }
    deed = words[1] if group and len(words) > 1 else verb
    text = shown(command)
    if (
        deed in {"rm", "rmi", "prune", "kill", "leave", "remove"}
        or (deed == "down" and letters(command, "v"))
        or has(command, "--volumes")
    ):
        judge.add("containers", f"`{text}` removes containers, images or volumes")
    elif deed in {"push", "login", "logout", "trust"}:
        judge.add("publishes", f"`{text}` publishes images or changes credentials")
    elif deed in _CONTAINER_READS or not words:
        return True
    else:
        judge.add("runs-program", f"`{text}` builds, runs or changes containers")
    host = has(command, "--privileged", "--pid", "--ipc", "--cap-add", "--device", "--userns", "--security-opt")
    for mount in value(command, "-v", "--volume", "--mount"):
        source_path = re.sub(r".*(?:source|src)=", "", mount.text).partition(":")[0].partition(",")[0]
        place = locate(source_path, judge.workspace)
        host = host or "docker.sock" in mount.text or place.top or place.system or place.secret
    if host:
        judge.add("containers", f"`{text}` gives a container access to the host")
    return True


_SECRETS = re.compile(r"(?:.*[,/])?secrets?(?:[./,].*)?", re.IGNORECASE).fullmatch


def verbs(reads: str, code: str, deed: str, *, reading: str = "reads-network", medium: str = "") -> Rule:
    """Programs for services elsewhere: some verbs read, all others change."""
    reading_verbs, medium_verbs = programs.names(reads), programs.names(medium)

    def rule(judge: Judge, command: Command) -> bool:
        words = [word.text for word in plain(command)]
        text = shown(command)
        judge.network = True
        given = set(words[:3])
        if deed == "changes a cluster" and (any(_SECRETS(word) for word in words) or has(command, "--raw")):
            judge.add("secret-read", f"`{text}` reads credentials of the cluster")
        if not words or (given & reading_verbs and not given & {"delete", "secret", "token", "apply", "destroy", "rm"}):
            judge.add(reading, f"`{text}` asks a service")
        elif given & medium_verbs:
            judge.add("runs-program", f"`{text}` runs locally")
        else:
            judge.add(code, f"`{text}` {deed}")
        judge.paths(command, judge.read)
        return True

    return rule


def github(judge: Judge, command: Command) -> bool:
    words = [word.text for word in plain(command)]
    text = shown(command)
    judge.network = True
    deed = words[1] if len(words) > 1 else ""
    method = [word.text.upper() for word in value(command, "-X", "--method")]
    if words[:1] == ["api"]:
        changes = (method and method[0] != "GET") or has(command, "-f", "-F", "--field", "--raw-field", "--input")
        judge.add("sends-network" if changes else "reads-network", f"`{text}` calls the service's API")
    elif words[:1] and words[0] in {
        "secret",
        "auth",
        "ssh-key",
        "gpg-key",
        "variable",
        "extension",
        "alias",
        "config",
        "codespace",
    }:
        judge.add("publishes", f"`{text}` reads or changes credentials or settings")
    elif deed in {
        "delete",
        "merge",
        "close",
        "archive",
        "transfer",
        "rename",
        "lock",
        "cancel",
        "rerun",
        "run",
        "upload",
        "edit",
    }:
        judge.add("infrastructure", f"`{text}` changes something that others see")
    elif deed in {"create", "comment", "review", "reopen", "checkout", "clone", "fork", "ready", "develop", "sync"}:
        judge.add("changes-repository", f"`{text}` changes something at the service")
    else:
        judge.add("reads-network", f"`{text}` asks the service")
    return True


def service(judge: Judge, command: Command) -> bool:
    verb = subcommand(command)
    if verb in {
        "status",
        "list",
        "show",
        "cat",
        "is-active",
        "is-enabled",
        "list-units",
        "list-unit-files",
        "list-timers",
        "print",
        "blame",
        "",
    }:
        return verb != ""
    judge.add("system" if command.name != "launchctl" else "schedules", f"`{shown(command)}` changes services")
    return True


def crontab(judge: Judge, command: Command) -> bool:
    return [word.text for word in command.arguments] == ["-l"]


def database(judge: Judge, command: Command) -> bool:
    judge.add("runs-program", f"`{shown(command)}` talks to a database")
    everything = [word.text for other in judge.script.commands for word in other.words]
    everything.extend(
        item.target.text
        for other in judge.script.commands
        for item in other.redirects
        if item.operator.startswith("<<") and item.target
    )
    if programs.QUERY(" ".join(everything)):
        judge.add("destructive-query", f"`{shown(command)}` changes or drops data")
    judge.paths(command, judge.read)
    return True


TERRAFORM = verbs(
    "plan validate fmt show output version providers graph init get state-list console metadata modules",
    "infrastructure",
    "changes infrastructure", reading="runs-program",
)  # fmt: skip


KUBECTL = verbs(
    "get describe logs version explain top api-resources api-versions cluster-info diff wait config events"
    " completion options",
    "infrastructure",
    "changes a cluster",
)


HELM = verbs(
    "list ls get status history search show template lint version repo dependency",
    "infrastructure",
    "changes a cluster",
)


CLOUD = verbs(
    "describe list ls get show version help info configure-list sts", "infrastructure", "changes cloud resources"
)
