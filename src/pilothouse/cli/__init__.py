"""The command line. Modules here declare commands and import what these need where they start, so `--help` is quick.

One module per group of commands; exits.py has the exit codes and says what went wrong.
"""

from __future__ import annotations

import click

from .. import __version__
from .acp import acp
from .agents import agents
from .approvals import approvals, approve, deny
from .attach import attach
from .configuration import config
from .demo import demo, demo_agent
from .devices import devices, pair, revoke
from .doctor import doctor
from .policy import policy
from .prompts import cancel, send
from .run import run
from .serve import serve, serve_and_open
from .sessions import export, ls, replay, show
from .setup import setup
from .stop import stop
from .tidying import archive, delete, rename

__all__ = ["main"]


class Sections(click.Group):
    """A group whose help lists commands by what they are for, in the order a newcomer needs them."""

    sections = (
        ("Run", ("run", "attach", "send", "cancel", "demo")),
        ("Decide", ("approvals", "approve", "deny")),
        ("Look", ("ls", "show", "replay", "export")),
        ("Tidy up", ("rename", "archive", "delete")),
        ("Serve", ("serve", "stop", "pair", "devices", "revoke")),
        ("Set up", ("setup", "agents", "policy", "config", "doctor")),
        ("For other programs", ("acp", "demo-agent")),
    )

    def list_commands(self, ctx: click.Context) -> list[str]:
        ordered = [name for _, names in self.sections for name in names]
        return ordered + sorted(set(self.commands) - set(ordered))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in self.sections:
            rows = [(name, _summary(self.commands[name])) for name in names]
            with formatter.section(title):
                formatter.write_dl(rows)


def _summary(command: click.Command) -> str:
    """The first sentence of a command's help, whole: lines are broken, never cut."""
    about = " ".join((command.help or "").partition("\n\n")[0].split())
    return about.partition(". ")[0].removesuffix(".") + "."


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
        serve_and_open()


_COMMANDS = (
    *(run, attach, send, cancel, demo, approvals, approve, deny, ls, show, replay, export),
    *(
        rename,
        archive,
        delete,
        serve,
        stop,
        pair,
        devices,
        revoke,
        setup,
        agents,
        policy,
        config,
        doctor,
        acp,
        demo_agent,
    ),
)
for _command in _COMMANDS:
    main.add_command(_command)
