"""The command line: `commands/` has one module per group of verbs, `exits` the exit codes and error messages.

A command's module is imported when the command is called, and imports its heavy parts where it starts, so that editors
and scripts do not wait for modules that they do not use.
"""

from __future__ import annotations

import os
import sys
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from .. import __version__
from .groups import Group

__all__ = ["main"]


MODULES = {
    **dict.fromkeys(("adopt", "discover"), "external"),
    **dict.fromkeys(("agent", "agents"), "agents"),
    **dict.fromkeys(("approvals", "approve", "deny"), "approvals"),
    **dict.fromkeys(("demo", "demo-agent"), "demo"),
    **dict.fromkeys(("devices", "pair", "revoke"), "devices"),
    **dict.fromkeys(("hook", "hooks"), "hooks"),
    **dict.fromkeys(("archive", "delete", "export", "ls", "rename", "replay", "show"), "sessions"),
    **dict.fromkeys(("cancel", "run", "send"), "run"),
    **dict.fromkeys(("serve", "stop"), "serve"),
}
"""The module of each command that is not in a module of its own name."""

ELSEWHERE = {
    **dict.fromkeys(("list", "ps", "sessions"), "ls"),
    **dict.fromkeys(("continue", "resume"), "run -s ID"),
    **dict.fromkeys(("allow", "permit"), "approve"),
    **dict.fromkeys(("open", "start", "up", "web"), "serve"),
    "link": "pair",
    "logs": "show",
    "rm": "delete",
    "status": "doctor",
}
"""What other programs of this kind call what is here."""


class Sections(Group):
    """A group whose help lists commands by what they are for, in the order a newcomer needs them."""

    sections = (
        ("Run", ("run", "attach", "send", "cancel", "adopt", "demo")),
        ("Decide", ("approvals", "approve", "deny")),
        ("Look", ("ls", "show", "replay", "export", "discover")),
        ("Tidy up", ("rename", "archive", "delete")),
        ("Serve", ("serve", "stop", "pair", "devices", "revoke")),
        ("Set up", ("setup", "agents", "hooks", "policy", "config", "doctor")),
        ("For other programs", ("acp", "hook", "agent", "demo-agent")),
    )

    def main(self, *args: Any, **kwargs: Any) -> Any:
        _open_streams()
        return super().main(*args, **kwargs)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for _, names in self.sections for name in names]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands and cmd_name in self.list_commands(ctx):
            module = import_module(f".commands.{MODULES.get(cmd_name, cmd_name)}", __name__)
            self.add_command(getattr(module, cmd_name.replace("-", "_")))
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as exc:
            # click itself looks only at those that are imported
            said = exc.format_message()
            meant = ELSEWHERE.get(args[0])
            if meant is not None:
                said = f"No such command {args[0]!r}."
            for near in [meant] if meant else get_close_matches(args[0], self.list_commands(ctx), 1):
                said += "" if f"'{near}'" in said else f" Did you mean '{near}'?"
            raise click.UsageError(said, ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in self.sections:
            with formatter.section(title):
                self.list_rows(ctx, formatter, list(names))


def _open_streams() -> None:
    """Put the null device in the place of standard streams that whoever started this has closed.

    Else the next file to be opened would get the number of one, and what is said there would end up in it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", errors="replace", closefd=False))  # noqa: SIM115


@click.group(
    cls=Sections,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="pilothouse")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Every coding agent, on every screen.

    Without a command it starts the hub, as `serve` does, and opens it in the browser.
    """
    if ctx.invoked_subcommand is None:
        from .commands.serve import serve_and_open

        serve_and_open()
