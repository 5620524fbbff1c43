"""The command line. Modules here declare commands and import what these need where they start, so `--help` is quick.

One module per group of commands; exits.py has the exit codes and says what went wrong.
"""

from __future__ import annotations

import click

from .. import __version__
from .agents import agents
from .demo import demo, demo_agent
from .doctor import doctor
from .policy import policy
from .run import run
from .sessions import approvals, export, ls, replay, show

__all__ = ["main"]


class Sections(click.Group):
    """A group whose help lists commands by what they are for, in the order a newcomer needs them."""

    sections = (
        ("Run", ("run", "demo")),
        ("Look", ("ls", "show", "replay", "export", "approvals")),
        ("Set up", ("agents", "policy", "doctor")),
        ("For other programs", ("demo-agent",)),
    )

    def list_commands(self, ctx: click.Context) -> list[str]:
        ordered = [name for _, names in self.sections for name in names]
        return ordered + sorted(set(self.commands) - set(ordered))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, names in self.sections:
            rows = [(name, self.commands[name].get_short_help_str(70)) for name in names]
            with formatter.section(title):
                formatter.write_dl(rows)


@click.group(cls=Sections, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="pilothouse")
def main() -> None:
    """Every coding agent, on every screen."""


for _command in (run, demo, ls, show, replay, export, approvals, agents, policy, doctor, demo_agent):
    main.add_command(_command)
