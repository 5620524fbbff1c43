"""Groups of commands whose help is whole."""

from __future__ import annotations

import click


class Group(click.Group):
    """A group that lists its commands with the first sentence of each, never cut."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            self.list_rows(ctx, formatter, self.list_commands(ctx))

    def list_rows(self, ctx: click.Context, formatter: click.HelpFormatter, names: list[str]) -> None:
        commands = [(name, command) for name in names if (command := self.get_command(ctx, name)) is not None]
        formatter.write_dl([(name, summary(command)) for name, command in commands])


def summary(command: click.Command) -> str:
    """The first sentence of a command's help, whole: lines are broken, never cut."""
    about = " ".join((command.help or "").partition("\n\n")[0].split())
    return about.partition(". ")[0].removesuffix(".") + "."
