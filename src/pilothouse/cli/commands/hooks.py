"""`pilothouse hooks`: Claude Code's questions to its user, also on the phone; and `pilothouse hook`, which it runs.

`hook` is run for every such question while somebody waits, so this module loads little. Whatever goes wrong there,
its exit code is never 2, which Claude Code would take for a decision.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..exits import Exit, Failure, reported
from ..groups import Group
from ..output import complete, print_json, say, short_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...app.hooks.entries import Found


class _Quiet(click.Command):
    """A command that another program runs: options that are wrong are told to its user, and decide nothing."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as exc:
            click.echo(f"pilothouse hook: {exc.format_message()}", err=True)
            sys.exit(Exit.ERROR)


@click.command(cls=_Quiet)
@click.option("--home", type=click.Path(path_type=Path), help="The home of the hub to ask, if it is not the usual one.")
@click.option("--url", metavar="URL", help="The hub to ask, if it is not the one of the home; needs a token.")
@click.option("--token-file", type=click.Path(path_type=Path), help="The file that has the token for --url.")
def hook(home: Path | None, url: str | None, token_file: Path | None) -> None:
    """Answer a question of Claude Code to its user; what `hooks install` lets it run.

    The hook's JSON is read from standard input, and the hub is asked; its decision is written to standard output. With
    no hub, or no decision, nothing is written, and Claude Code asks its user itself.
    """
    from ...remote.hook import Refusal, ask, find_target, is_for_the_hub, output, read_question, url_target

    try:
        if sys.stdin is None or sys.stdout is None:
            raise Refusal("it reads standard input and writes standard output, and one of them is closed")
        question = read_question(sys.stdin.buffer)
        if not is_for_the_hub(question, os.environ):
            return
        target = url_target(url, _token(token_file)) if url is not None else find_target(home or _usual_home())
        answer = ask(target, question, listener=sys.stdout.fileno()) if target is not None else {}
        sys.stdout.write(output(answer))
        sys.stdout.flush()
    except (Refusal, OSError) as exc:
        click.echo(f"Pilothouse was not asked: {exc}", err=True)
        sys.exit(Exit.ERROR)
    except KeyboardInterrupt:
        sys.exit(Exit.CANCELLED)


def _token(file: Path | None) -> str | None:
    """Raises OSError, which says what is wrong with the file."""
    if file is None:
        return os.environ.get("PILOTHOUSE_TOKEN", "").strip() or None
    try:
        return file.expanduser().read_text().strip()
    except OSError as exc:
        raise OSError(f"the token cannot be read from {file}: {exc.strerror or exc}") from exc
    except UnicodeError as exc:
        raise OSError(f"{file} has no token in it: it is no text") from exc


def _usual_home() -> Path:
    from ...config import home_directory

    return home_directory()


# -- the settings -------------------------------------------------------------------------------------------------


@click.group(cls=Group)
def hooks() -> None:
    """Let Claude Code sessions that run elsewhere ask here too: what they want to do, on every screen.

    Claude Code then runs `pilothouse hook` whenever it would ask its user. In a terminal its own dialog is shown as
    ever, and whoever answers first is heard. Sessions that the hub runs itself are not concerned.
    """


_CHOICES = ("user", "project", "local")


def _placed(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say which settings are meant."""
    scope = click.option(
        "--scope",
        type=click.Choice(_CHOICES),
        default="user",
        show_default=True,
        help="Whose settings: yours, those of the project in this directory, or your own in it.",
    )
    file = click.option(
        "--settings", "path", type=click.Path(path_type=Path), help="The settings file, where it is elsewhere."
    )
    return scope(file(click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)))


@hooks.command()
@_placed
@click.option(
    "--timeout",
    type=click.IntRange(1, 7 * 24 * 3600),
    default=24 * 3600,
    show_default=True,
    help="Seconds that a question waits for the hub.",
)
@click.option("--url", metavar="URL", help="A hub elsewhere that is to be asked; needs --token-file.")
@click.option("--token-file", type=click.Path(path_type=Path), help="The file that has the token for --url.")
@reported
def install(
    scope: str, path: Path | None, as_json: bool, timeout: int, url: str | None, token_file: Path | None
) -> None:
    """Enter the hook into Claude Code's settings; a copy of the old ones is kept beside them. Again changes nothing."""
    from datetime import datetime

    from ...app.editors.files import is_passing, running_program
    from ...app.hooks.entries import entry
    from ...app.hooks.installing import install as install_into

    program = running_program()
    words = [*program, "hook", *_told(url, token_file)]
    if is_passing(program):
        say(f"Note: {program[0]} lies in a cache. Install Pilothouse for good, or the hook may break.", err=True)
    file = _file(scope, path)
    done = install_into(file, entry(words, timeout), _usual_home(), datetime.now())
    for note in _notes(file, words, token_file):
        say(f"Note: {note}", err=True)
    if as_json:
        _print(file, done.changed, done.backup, state="installed")
        return
    say(f"{short_path(str(file))}: {'the hook is entered' if done.changed else 'the hook is there already'}.")
    _say_backup(done.backup)
    say("Sessions that are started from now on ask the hub as well; `pilothouse hooks status` says whether it answers.")


def _notes(file: Path, words: list[str], token_file: Path | None) -> Iterator[str]:
    """What keeps a hook that is entered from its work, or its token from being a secret."""
    for settings in dict.fromkeys((file, *(_file(scope, None) for scope in _CHOICES))):
        if _is_off(settings):
            yield f"{_OFF} in {short_path(str(settings))}, so Claude Code will not run the hook."
    if token_file is None:
        return
    if os.name == "posix" and token_file.expanduser().stat().st_mode & 0o077:
        yield f"other users may read {short_path(str(token_file))}; `chmod 600` keeps the token to yourself."
    answers, text = complete(_hub(words))
    if not answers:
        yield f"{text}."


_OFF = "`disableAllHooks` is set"


def _is_off(file: Path) -> bool:
    from ...app.hooks.installing import is_switched_off
    from ...config import ConfigError

    try:
        return is_switched_off(file)
    except ConfigError:  # told where somebody asks for these settings
        return False


def _told(url: str | None, token_file: Path | None) -> list[str]:
    """The options by which the hook finds its hub. Raises Failure."""
    from ...remote.hook import Refusal, url_target

    if url is None:
        if token_file is not None:
            raise click.UsageError("--token-file goes with --url")
        return ["--home", str(_usual_home())]  # named, so that no project's variables lead the hook to another hub
    if token_file is None:
        raise click.UsageError("--url needs --token-file, a file with the hub's token or that of a device")
    try:
        url_target(url, _token(token_file))
    except (Refusal, OSError) as exc:
        raise Failure(str(exc), Exit.USAGE) from None
    return ["--url", url, "--token-file", str(token_file.expanduser().absolute())]


@hooks.command()
@_placed
@reported
def uninstall(scope: str, path: Path | None, as_json: bool) -> None:
    """Take the hook out of Claude Code's settings again. Unchanged since, they are what they were, to the byte."""
    from datetime import datetime

    from ...app.hooks.installing import uninstall as uninstall_from

    file = _file(scope, path)
    done = uninstall_from(file, _usual_home(), datetime.now())
    if as_json:
        _print(file, done.changed, done.backup, state="absent", restored=done.exact)
        return
    if not done.changed:
        say(f"{short_path(str(file))}: there is no hook of ours.")
        return
    say(f"{short_path(str(file))}: {'as it was before the hook' if done.exact else 'the hook is taken out'}.")
    _say_backup(done.backup)


@hooks.command()
@click.option("--settings", "path", type=click.Path(path_type=Path), help="A settings file that is elsewhere.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@reported
def status(path: Path | None, as_json: bool) -> None:
    """Say which of Claude Code's settings have the hook, and whether the hub answers."""
    files = {"given": _file("user", path)} if path is not None else {one: _file(one, None) for one in _CHOICES}
    rows = [_row(scope, file) for scope, file in files.items()]
    command = next((row["command"] for row in rows if row["command"]), "")
    answers, words = complete(_hub(shlex.split(command)))
    if as_json:
        print_json({"settings": rows, "hub": {"answers": answers, "text": words}})
        return
    for row in rows:
        say(f"{row['scope']:8} {short_path(str(row['file']))}: {row['text']}")
    say(f"{'hub':8} {words}")


def _row(scope: str, file: Path) -> dict[str, Any]:
    from ...app.hooks.installing import inspect
    from ...config import ConfigError

    try:
        there = inspect(file)
    except ConfigError as exc:
        return {"scope": scope, "file": str(file), "state": "unreadable", "command": None, "text": str(exc)}
    command = there[0].command if there else None
    state, text = _standing(there)
    if _is_off(file):
        state, text = "off" if there else state, f"{text}; {_OFF}: Claude Code runs no hooks"
    return {"scope": scope, "file": str(file), "state": state, "command": command, "text": text}


def _standing(there: list[Found] | None) -> tuple[str, str]:
    import shutil

    if not there:
        return "absent", "no hook of ours" if there is not None else "no such file"
    program = next((word for word in there[0].words if "=" not in word), "")
    if shutil.which(program) is None:
        return "broken", f"runs {program}, which is not there; `pilothouse hooks install` has what is"
    return "installed", f"runs `{there[0].command}`, for at most {there[0].timeout} s"


async def _hub(words: list[str]) -> tuple[bool, str]:
    """Whether the hub that a hook asks can be asked by it, and in words."""
    from ...remote.errors import Refused, RemoteError
    from ...remote.hub import connect

    given = {name: words[words.index(name) + 1] for name in ("--home", "--url", "--token-file") if name in words[:-1]}
    try:
        if "--url" in given:
            token = _token(Path(given["--token-file"]) if "--token-file" in given else None)
            hub = connect(url=given["--url"], token=token)
        else:
            hub = connect(given.get("--home") or _usual_home())
        async with hub as reached:
            await reached.agents()  # to be healthy is not enough: the token has to be right
            return True, f"answers{f' at {reached.url}' if reached.url else ''}"
    except Refused as exc:
        why = "the hub does not take the token of the entry" if exc.status in (401, 403) else "the hub refuses"
        return False, f"{why} ({exc}): the hook is not answered, and Claude Code asks its user itself"
    except (RemoteError, OSError, ValueError) as exc:
        return False, f"{exc}; as long as that is so Claude Code asks its user itself"


def _file(scope: str, path: Path | None) -> Path:
    from ...app.hooks.installing import settings_file

    return path.expanduser().absolute() if path is not None else settings_file(scope, Path.cwd(), Path.home())


def _print(file: Path, changed: bool, backup: Path | None, **more: Any) -> None:
    print_json({"file": str(file), "changed": changed, "backup": str(backup) if backup else None, **more})


def _say_backup(backup: Path | None) -> None:
    if backup is not None:
        say(f"As it was: {short_path(str(backup))}", err=True)
