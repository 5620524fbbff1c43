"""`pilothouse policy`: list, check, narrow, keep and revoke the rules that decide requests without asking."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..exits import reported
from ..groups import Group
from ..output import ago, complete, console, print_json, say, short_path

if TYPE_CHECKING:
    from ...config import Config
    from ...log.records import Rule as Kept
    from ...model.policy import Rule


@click.group(cls=Group)
def policy() -> None:
    """See which requests are answered without asking, and why."""


@policy.command("show")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
@reported
def show(as_json: bool) -> None:
    """List the rules of config.toml, and those that "always" stored."""
    from ...config import load_config

    config = load_config()
    kept = complete(_kept(config))
    written = _written(config)
    if as_json:
        import msgspec

        print_json({"policy": config.policy, "rules": msgspec.to_builtins(kept)})
        return
    from rich.markup import escape

    from ...dialects.texts import title_of
    from ...model.policy import describe_rule

    out = console()
    out.print(f"[dim]{escape(str(config.path))}[/]")
    for rule in written:
        out.print(f"  [{_style(rule.effect)}]{rule.effect:5}[/] {escape(rule.label)}")
    if not written:
        out.print("  no rules: everything is asked")
    out.print('[dim]stored by "always"[/]')
    for record in kept:
        where = "" if record.scope == "everywhere" else f" {short_path(record.scope_key)}"
        used = f"used {record.hits}×" if record.hits else "never used"
        line = f"  [{_style(record.effect)}]{record.effect:5}[/] {escape(title_of(describe_rule(record.rule)))}"
        about = f"{escape(record.scope + where)} · {used} · made {ago(record.created)}"
        out.print(f"{line}  [dim]{about}[/]", soft_wrap=True)
    if not kept:
        out.print("  none")


@policy.command("rules")
@click.option("--all", "everything", is_flag=True, help="Include expired and revoked rules")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
@reported
def rules(everything: bool, as_json: bool) -> None:
    """List stored “always” rules with their reach, scope, use and expiry.

    Earlier versions stored some rules for any arguments although they said "exactly this request". These are marked.
    Narrow one with `pilothouse policy narrow`, confirm it with `pilothouse policy keep`, or delete it with
    `pilothouse policy revoke`.
    """
    from ...config import load_config
    from ...hub.recording.rules import describe_wide_rules
    from ..stored_rules import kept_rules

    found = complete(kept_rules(load_config(), everything=everything))
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo(
            'No rules yet. "Always allow" creates one, as does: pilothouse approve ID --always project', err=True
        )
        return
    for rule in found:
        _print_rule(rule)
    wide = sum(rule["isWide"] for rule in found)
    if wide:
        say(f"{describe_wide_rules(wide)}.", err=True)
        say("Narrow: pilothouse policy narrow RULE", err=True)
        say("Keep:   pilothouse policy keep RULE", err=True)
        say("Delete: pilothouse policy revoke RULE", err=True)


def _print_rule(rule: dict[str, Any]) -> None:
    from rich.text import Text

    from ...dialects.texts import title_of
    from ..stored_rules import what_rule

    out = console()
    head = Text.assemble((f"{rule['effect']:5} ", _style(rule["effect"])), (title_of(what_rule(rule)), "bold"))
    if rule["isWide"]:
        head.append("  ! covers any arguments", "yellow")
    out.print(head, soft_wrap=not out.is_terminal)
    if rule["rule"].get("arguments"):
        out.print(Text(f"      {_arguments(rule)}", style="cyan"), soft_wrap=not out.is_terminal)
    facts = (rule["id"], _where(rule), _use(rule), _until(rule), _maker(rule))
    say(f"      {' · '.join(filter(None, facts))}", hanging=6)


def _arguments(rule: dict[str, Any]) -> str:
    """The arguments that a rule is limited to, as one line of JSON."""
    import msgspec

    from ...dialects.texts import shown

    return shown(msgspec.json.encode(rule["rule"]["arguments"]).decode())


def _where(rule: dict[str, Any]) -> str:
    return "everywhere" if rule["scope"] == "everywhere" else f"{rule['scope']} {short_path(rule['scopeKey'])}"


def _maker(rule: dict[str, Any]) -> str:
    """The name that signed the decision; rules of early versions have none."""
    from ...dialects.texts import title_of

    return f"by {title_of(rule['madeBy'])}" if rule["madeBy"] else ""


def _use(rule: dict[str, Any]) -> str:
    return f"used {rule['hits']}×, last {ago(rule['lastHit'])}" if rule["hits"] else "never used"


def _until(rule: dict[str, Any]) -> str:
    if rule["revoked"]:
        return f"revoked {ago(rule['revoked'])}"
    if not rule["expires"]:
        return "for good"
    return f"{'until' if rule['active'] else 'expired'} {rule['expires'][:16].replace('T', ' ')} UTC"


@policy.command("narrow")
@click.argument("rule", metavar="RULE")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
@reported
def narrow(rule: str, as_json: bool) -> None:
    """Limit a rule of an earlier version to the arguments you approved, by the beginning of its id."""
    _change_wide_rule(rule, as_json, "Narrowed to:", narrow=True)


@policy.command("keep")
@click.argument("rule", metavar="RULE")
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
@reported
def keep(rule: str, as_json: bool) -> None:
    """Confirm a rule of an earlier version for any arguments, by the beginning of its id."""
    _change_wide_rule(rule, as_json, "Kept as it is:", narrow=False)


def _change_wide_rule(beginning: str, as_json: bool, head: str, *, narrow: bool) -> None:
    from ...config import load_config
    from ..stored_rules import change_wide_rule

    changed = complete(change_wide_rule(load_config(), beginning, narrow=narrow))
    if as_json:
        print_json(changed)
        return
    click.echo(head)
    _print_rule(changed)


@policy.command("revoke")
@click.argument("rule", metavar="RULE")
@reported
def revoke(rule: str) -> None:
    """Delete a rule, by the beginning of its id. Such requests are asked about again."""
    from ...config import load_config
    from ...dialects.texts import title_of
    from ..stored_rules import revoke_rule, what_rule

    gone = complete(revoke_rule(load_config(), rule))
    click.echo(f"Revoked: {gone['effect']} {title_of(what_rule(gone))} ({gone['id']}).")


@policy.command("check")
@click.argument("command")
@click.option(
    "--cwd",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="Directory of the session; the current one by default",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON")
@reported
def check(command: str, cwd: Path | None, as_json: bool) -> None:
    """Show whether COMMAND would be allowed, denied or asked about, and its risk. Nothing is run."""
    from ...config import load_config
    from ...model.policy import decide
    from ...model.risk import assess_command

    workspace = str(cwd or Path.cwd())
    config = load_config()
    rules = [*_written(config), *_applying(complete(_kept(config)), workspace)]
    rules.sort(key=lambda rule: rule.effect != "deny")
    decision = decide(rules or None, "Bash", {"command": command}, workspace)
    risk = assess_command(command, workspace)
    if as_json:
        reasons = [{"code": reason.code, "level": reason.level, "text": reason.text} for reason in risk.reasons]
        answer: dict[str, Any] = {"outcome": decision.outcome, "rule": decision.rule, "reason": decision.reason}
        print_json({"command": command, "cwd": workspace, **answer, "risk": {"level": risk.level, "reasons": reasons}})
        return
    from rich.text import Text

    from ...dialects.texts import shown
    from ...terminal.drawing import risk_text

    out = console()
    words = {"allow": "allowed without asking", "deny": "denied without asking", "ask": "asked"}
    out.print(Text(words[decision.outcome], style=f"bold {_style(decision.outcome)}"))
    # in a terminal broken between words, in a pipe not at all
    out.print(Text(shown(decision.reason)), soft_wrap=not out.is_terminal)
    out.print(risk_text(risk.level, [reason.text for reason in risk.reasons]), soft_wrap=not out.is_terminal)


def _style(effect: str) -> str:
    return {"allow": "green", "deny": "red"}.get(effect, "yellow")


def _written(config: Config) -> list[Rule]:
    from ...model.policy import compile_policy, parse_policy

    return list(compile_policy(parse_policy(config.policy)))


async def _kept(config: Config) -> list[Kept]:
    from ...app.stored_sessions import open_archive

    async with open_archive(config) as archive:
        return list(await archive.rules.active())


def _applying(kept: list[Kept], workspace: str) -> list[Rule]:
    """The stored rules that hold in a new session there."""
    from ...hub.recording.rules import read_rule

    found = (
        read_rule(record)
        for record in kept
        if record.scope == "everywhere" or (record.scope == "project" and _same(record.scope_key, workspace))
    )
    return [rule for rule in found if rule is not None]


def _same(one: str, other: str) -> bool:
    return os.path.normpath(one) == os.path.normpath(other)
