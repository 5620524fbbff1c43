"""`pilothouse pair`, `devices` and `revoke`: phones, browsers and programs with a credential of their own."""

from __future__ import annotations

import io
import ipaddress
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from ..exits import Exit, Failure, reported
from ..output import ago, complete, console, print_json, print_table, say

FROM_A_PHONE = "For a phone: `serve --host … --tls-cert … --tls-key …`; see `pilothouse serve --help`."


def is_loopback(url: str) -> bool:
    """Whether only this machine gets to that address."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def print_qr(text: str) -> None:
    import segno
    from rich.text import Text

    from ..output import console

    drawn = io.StringIO()
    segno.make(text, error="l", micro=False).terminal(drawn, border=2, compact=True)
    console().print(Text(drawn.getvalue().rstrip("\n"), style="bright_white on black"), no_wrap=True, crop=False)


if TYPE_CHECKING:
    from ...remote.hub import RemoteHub


SCOPES = ("read", "prompt", "approve", "admin")
STEP = 0.3
LOOKS = 10
ENDS = {
    "expired": "The code has expired; nobody used it.",
    "locked": "Too many wrong codes were given; nobody was let in.",
    "withdrawn": "The code was withdrawn.",
}


@click.command()
@click.option("--name", help="What to call the device; by default what it calls itself.")
@click.option(
    "--scope", "scopes", type=click.Choice(SCOPES), multiple=True, help="What it may do; by default all but admin."
)
@click.option("--json", "as_json", is_flag=True, help="Print the ticket as JSON, and do not wait.")
@reported
def pair(name: str | None, scopes: tuple[str, ...], as_json: bool) -> None:
    """Let a phone or another device in by a QR code.

    Scan it with the device and type the code that is shown here. It works once, and not for long; this command waits
    until it is used. Ctrl-C withdraws it.
    """
    try:
        complete(_pair(name, list(scopes) or None, as_json))
    except KeyboardInterrupt:
        click.echo("\nWithdrawn." if sys.stdin.isatty() else "Withdrawn.", err=True)
        sys.exit(Exit.CANCELLED)


async def _pair(name: str | None, scopes: list[str] | None, as_json: bool) -> None:
    import asyncio

    from ...app.stored_sessions import find_hub
    from ...config import load_config

    hub = await find_hub(load_config())
    if hub is None or hub.url is None:
        raise Failure("no hub is running that a device could reach; `pilothouse serve` starts one", Exit.HOME)
    pairing = await hub.start_pairing(name=name, scopes=scopes)
    if as_json:
        print_json(pairing)
        return
    code = click.style(str(pairing["code"]), bold=True)
    if is_loopback(str(pairing["url"])):
        say(f"Warning: only this machine reaches {hub.url}. {FROM_A_PHONE}", err=True)
        say(f"Here, open {pairing['url']} and type {code}.")
    else:
        print_qr(str(pairing["url"]))
        say(f"Scan it with the device, or open {pairing['url']} there, and type {code}.")
    say(f"It may: {', '.join(pairing['scopes'])}. The code works for {pairing['expiresIn'] // 60} minutes.")
    try:
        state = await _settled(hub, str(pairing["id"]))
    except asyncio.CancelledError:
        await hub.withdraw_pairing(str(pairing["id"]))
        raise
    if state["state"] != "used":
        raise Failure(ENDS.get(state["state"], f"The pairing ended: {state['state']}."), Exit.ERROR)
    device = next((one for one in await hub.devices() if one["id"] == state.get("deviceId")), {})
    click.echo(f"Paired: {_shown(device.get('name', '?'))} ({state.get('deviceId')}).")


async def _settled(hub: RemoteHub, pairing_id: str) -> dict[str, Any]:
    """The pairing once it has ended; one that was used a moment ago gets the time to name its device."""
    import asyncio

    looks = 0
    while True:
        state = await hub.pairing(pairing_id)
        is_used = state["state"] == "used"
        looks += is_used
        if (state["state"] != "pending" and not is_used) or state.get("deviceId") or looks > LOOKS:
            return state
        await asyncio.sleep(STEP)


@click.command()
@click.option("--all", "everything", is_flag=True, help="List revoked ones as well.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@reported
def devices(everything: bool, as_json: bool) -> None:
    """List paired devices, what each may do, and when it was last here."""
    found = [device for device in complete(_devices()) if everything or not device.get("revoked")]
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo("No device is paired. `pilothouse pair` lets one in.", err=True)
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column in ("device", "name", "may", "last seen", ""):
        table.add_column(column, overflow="fold")
    for device in found:
        seen = ago(device["lastSeen"]) if device.get("lastSeen") else "never"
        row = (device["id"], _shown(device["name"]), ", ".join(device["scopes"]), seen)
        table.add_row(*map(Text, row), Text("revoked" if device.get("revoked") else "", style="red"))
    print_table(console(), table)


async def _devices() -> list[dict[str, Any]]:
    from ...app.stored_sessions import find_hub, open_archive
    from ...config import load_config
    from ...log.records import Device

    config = load_config()
    hub = await find_hub(config)
    if hub is not None:
        return await hub.devices()
    async with open_archive(config) as archive:
        rules = Counter(rule.device_id for rule in await archive.rules.active())
        return [_row(record, rules[record.id]) for record in await archive.find(Device, {})]


def _row(record: Any, rules: int) -> dict[str, Any]:
    """A device of the archive as the hub tells it; never its credential."""
    return {
        "id": record.id,
        "name": record.name,
        "scopes": record.scopes,
        "created": record.created,
        "lastSeen": record.last_seen,
        "revoked": record.revoked,
        "connections": 0,
        "rules": rules,
    }


@click.command()
@click.argument("device", metavar="ID|NAME")
@reported
def revoke(device: str) -> None:
    """Send a device away: credential and connections end at once. Rules that it made are told of; they stay."""
    found, rules = complete(_revoke(device))
    click.echo(f"Revoked: {_shown(found['name'])} ({found['id']}).")
    if rules:
        what = "1 rule that it made still answers" if rules == 1 else f"{rules} rules that it made still answer"
        say(f"{what} without asking: `pilothouse policy rules` lists them, `pilothouse policy revoke` deletes one.")


async def _revoke(wanted: str) -> tuple[dict[str, Any], int]:
    """The device, and how many rules it leaves behind."""
    from ...app.composition import open_hub
    from ...app.stored_sessions import find_hub
    from ...config import load_config
    from ..stored_rules import kept_rules

    found = _matched(wanted, [device for device in await _devices() if not device.get("revoked")])
    config = load_config()
    hub = await find_hub(config)
    if hub is not None:
        await hub.revoke(found["id"])
    else:
        async with open_hub(config, []) as own:
            await own.log.devices.revoke(found["id"])
    return found, sum(rule["deviceId"] == found["id"] for rule in await kept_rules(config))


def _matched(wanted: str, known: list[dict[str, Any]]) -> dict[str, Any]:
    """The device of this id, the beginning of it, or of this name. Raises Failure."""
    begins = (wanted, f"dev_{wanted}")
    found = [one for one in known if wanted and (one["id"].startswith(begins) or one["name"] == wanted)]
    exact = [one for one in found if one["id"] == wanted]
    if len(exact or found) != 1:
        what = "no device fits" if not found else f"{len(found)} devices fit"
        raise Failure(f"{what} {wanted!r}; `pilothouse devices` lists them", Exit.USAGE)
    return (exact or found)[0]


def _shown(text: str) -> str:
    from ...dialects.texts import title_of

    return title_of(str(text))
