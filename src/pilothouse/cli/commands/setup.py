"""`pilothouse setup`: what an editor needs to run `pilothouse acp`, printed or merged into the editor's own file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..exits import Exit, Failure, reported
from ..output import print_json, say, short_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...app.editors.entries import Entry, Snippet, Standing


T = TypeVar("T")

EDITORS = ("zed", "jetbrains", "neovim", "emacs")
TITLES = {"zed": "Zed", "jetbrains": "JetBrains", "neovim": "Neovim", "emacs": "Emacs"}
NEXT = {
    "zed": (
        "In Zed open the agent panel and choose Pilothouse in the menu of new threads; no restart is needed.",
        "Who works in a thread is its option Agent, until the first prompt. `dev: open acp logs` shows what is said.",
    ),
    "jetbrains": (
        "In the IDE open AI Chat and choose Pilothouse in the list of agents; restart the IDE if it is not listed.",
        "AI Assistant has to be installed, 2025.3 or newer; for an agent of your own it needs no subscription.",
    ),
    "neovim": (
        "Put the part for your plugin into the call of `setup` that you have, and start Neovim anew.",
        "CodeCompanion: `ga` in a chat chooses the adapter. avante and agentic: `provider` says which is used.",
    ),
    "emacs": (
        "Put it into your init file, or evaluate it; agent-shell and acp.el have to be installed.",
        "Then M-x agent-shell, and choose Pilothouse.",
    ),
}


@click.command()
@click.argument("editor", type=click.Choice(EDITORS))
@click.option("-a", "--agent", "agents", multiple=True, metavar="NAME", help="Add an entry for one agent; repeatable.")
@click.option("--print", "only_print", is_flag=True, help="Only print, which is the default.")
@click.option("--write", is_flag=True, help="Merge it into the editor's file; a copy of the old one is kept beside it.")
@click.option("--remove", is_flag=True, help="Take it out of the editor's file again; with -a only these entries.")
@click.option("--force", is_flag=True, help="Replace an entry of the same name that differs.")
@click.option("--file", "path", type=click.Path(path_type=Path), help="The editor's file, where it is elsewhere.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@reported
def setup(
    editor: str,
    agents: tuple[str, ...],
    only_print: bool,
    write: bool,
    remove: bool,
    force: bool,
    path: Path | None,
    as_json: bool,
) -> None:
    """Set an editor up to run `pilothouse acp`: Zed, JetBrains, Neovim or Emacs.

    Prints the configuration. --write merges it into Zed's settings.json or JetBrains' acp.json and leaves everything
    else there as it is, comments included. The entry "Pilothouse" offers every agent.
    """
    if only_print + write + remove > 1:
        raise click.UsageError("--print, --write and --remove exclude each other")
    if force and not write:
        raise click.UsageError("--force goes with --write")
    from ...config import ConfigError

    try:
        entries = _entries(agents, is_new=not remove)
        if editor in ("neovim", "emacs"):
            _tell_code(editor, entries, path, write=write, remove=remove, as_json=as_json)
        else:
            work = _write if write else _remove if remove else _show
            work(_Job(editor, path, entries, agents, force, as_json))
    except (Failure, ConfigError, click.UsageError) as exc:
        if as_json:
            print_json({"editor": editor, "changed": False, "problem": str(exc)})
        raise


def _entries(agents: Sequence[str], *, is_new: bool) -> list[Entry]:
    """The entries; those that are taken out may be of an agent, or of a program, that is gone."""
    from ...app.composition import registry
    from ...app.editors.entries import make_entries
    from ...app.editors.files import entry_environment, is_passing, running_program
    from ...config import load_config
    from ..agent_choice import checked_agent

    config = load_config()
    if agents and is_new:
        known = registry(config)
        for agent in agents:
            checked_agent(known, agent)
    program = running_program()
    if is_new and is_passing(program):
        say(f"Note: {program[0]} lies in a cache. Install Pilothouse for good, or the entry may break.", err=True)
    return make_entries(program, agents, entry_environment(config.home, Path.home()))


# -- Neovim and Emacs ---------------------------------------------------------------------------------------------


def _tell_code(
    editor: str, entries: list[Entry], path: Path | None, *, write: bool, remove: bool, as_json: bool
) -> None:
    """What belongs into the user's own code, or is to be taken out of it. We edit none. Raises Failure."""
    if path is not None:
        raise click.UsageError(f"--file is for Zed and JetBrains; {TITLES[editor]} is configured by code")
    if remove:
        _tell_removal(editor, entries, as_json=as_json)
        return
    if write and as_json:
        raise _by_hand(editor)
    _show_code(editor, entries, as_json=as_json)
    if write:
        raise _by_hand(editor)


def _by_hand(editor: str) -> Failure:
    return Failure(f"{TITLES[editor]} is configured by code, which is not edited: do it by hand", Exit.USAGE)


def _show_code(editor: str, entries: list[Entry], *, as_json: bool) -> None:
    from ...app.editors import entries as snippets

    write: Callable[[list[Entry]], list[Snippet]] = getattr(snippets, editor)
    found = write(entries)
    if as_json:
        told = [{"plugin": one.plugin, "language": one.language, "text": one.text} for one in found]
        print_json({"editor": editor, "file": None, "changed": False, "snippets": told, "next": NEXT[editor]})
    else:
        mark = {"lua": "--", "elisp": ";;"}
        click.echo("\n\n".join(f"{mark[one.language]} {one.plugin}\n{one.text}" for one in found))
        _say_next(editor)


def _tell_removal(editor: str, entries: list[Entry], *, as_json: bool) -> None:
    names = [name for entry in entries for name in dict.fromkeys((entry.key, entry.key.replace("-", "_")))]
    what = f"Nothing was ever written into {TITLES[editor]}'s files, so nothing is taken out of them."
    how = f"If you put it into your own code, take out what is called {' or '.join(names)}, and start it anew."
    if as_json:
        told = [{"name": name, "state": "by hand", "entry": None} for name in names]
        about = {"editor": editor, "file": None, "changed": False, "backup": None}
        print_json({**about, "entries": told, "next": [what, how]})
        return
    say(what)
    say(how)


# -- Zed and JetBrains --------------------------------------------------------------------------------------------


class _Job:
    """One editor, its file as it is, and the entries that are asked for."""

    def __init__(
        self,
        editor: str,
        path: Path | None,
        entries: list[Entry],
        agents: tuple[str, ...],
        force: bool,
        as_json: bool,
    ) -> None:
        from ...app.editors.files import read, settings_files

        self.editor = editor
        self.path = path.expanduser().absolute() if path else settings_files(editor, Path.home())[0]
        self.wanted = {entry.name: entry.server(is_typed=editor == "zed") for entry in entries}
        self.agents = agents
        self.force = force
        self.as_json = as_json
        self.text = read(self.path)

    def standing(self) -> list[Standing]:
        from ...app.editors.entries import standing

        return self.edit(standing, self.wanted)

    def edit(self, work: Callable[..., T], *args: Any) -> T:
        """Work on the text; what is wrong with it is told with the file, line and column."""
        from ...app.editors.jsonc import JsoncError
        from ...config import ConfigError

        try:
            return work(self.text or "", *args)
        except JsoncError as exc:
            raise ConfigError(self.path, f"column {exc.column}: {exc}", line=exc.line) from None

    def replace(self, new: str) -> Path | None:
        from datetime import datetime

        from ...app.editors.files import replace

        return replace(self.path, self.text, new, datetime.now())

    def tell(self, entries: list[dict[str, Any]], **more: Any) -> None:
        about = {"editor": self.editor, "file": str(self.path), "changed": False, "backup": None, **more}
        print_json({**about, "entries": entries, "next": NEXT[self.editor]})

    @property
    def place(self) -> str:
        return short_path(str(self.path))


def _show(job: _Job) -> None:
    from ...app.editors.entries import SERVERS
    from ...app.editors.jsonc import pretty
    from ...config import ConfigError

    problem, found = None, []
    try:
        found = job.standing()
    except ConfigError as exc:
        problem = str(exc)
    if job.as_json:
        states = {entry.name: entry.state for entry in found}
        told = [{"name": name, "state": states.get(name), "entry": new} for name, new in job.wanted.items()]
        job.tell(told, problem=problem)
        return
    click.echo(pretty({SERVERS: job.wanted}))
    click.echo(err=True)
    if problem is not None:
        say(f"It belongs into {job.place}, but that cannot be read: {problem}", err=True)
    elif all(entry.state == "same" for entry in found):
        say(f"It is in {job.place} already.", err=True)
    else:
        say(f"It belongs into {job.place}; --write merges it into what is there.", err=True)
        _say_differences(found)
    _say_next(job.editor)


def _write(job: _Job) -> None:
    from ...app.editors.entries import merged

    found = job.standing()
    if any(entry.state == "differs" for entry in found) and not job.force:
        _say_differences(found)
        raise Failure(f"{job.place} has another entry of that name; --force replaces it", Exit.USAGE)
    new = job.edit(merged, job.wanted)
    backup = job.replace(new) if new != job.text else None
    words = {"absent": "added", "differs": "replaced", "same": "already there"}
    if job.as_json:
        told = [{"name": one.name, "state": words[one.state], "entry": one.new} for one in found]
        job.tell(told, changed=new != job.text, backup=str(backup) if backup else None)
        return
    for one in found:
        click.echo(f"{one.name}: {words[one.state]}")
    _say_written(job, backup)
    _say_next(job.editor)


def _remove(job: _Job) -> None:
    from ...app.editors.entries import is_own_name, name_for, own_servers, without

    there = [name for name in job.edit(own_servers) if is_own_name(name)]
    asked = [name_for(agent) for agent in job.agents] or there or [name_for(None)]
    new = job.edit(without, asked)
    backup = job.replace(new) if job.text is not None and new != job.text else None
    states = {name: "removed" if name in there else "not there" for name in asked}
    if job.as_json:
        told = [{"name": name, "state": state, "entry": None} for name, state in states.items()]
        job.tell(told, changed=backup is not None, backup=str(backup) if backup else None)
        return
    for name, state in states.items():
        click.echo(f"{name}: {state}")
    _say_written(job, backup)


def _say_differences(found: Sequence[Standing]) -> None:
    from ...app.editors.entries import difference

    for entry in found:
        if entry.state == "differs":
            click.echo(difference(entry), err=True)


def _say_written(job: _Job, backup: Path | None) -> None:
    kept = f"; as it was: {short_path(str(backup))}" if backup else ""
    click.echo(f"{job.place}{kept}", err=True)


def _say_next(editor: str) -> None:
    for line in NEXT[editor]:
        say(line, err=True)
