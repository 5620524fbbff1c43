"""What the browser is shown instead of what only this machine has: paths, and the codes of a pairing.

Text on its way to the browser names another home directory, and what comes back names the real one.
"""

from __future__ import annotations

import json
from pathlib import Path

import segno
from playwright.async_api import BrowserContext, Route, WebSocketRoute

__all__ = ["HOME", "hang_up"]

HOME = "/home/me"
LINK = "https://pilothouse.example/#pair=this-ticket-is-for-a-picture"
PAIRING = {
    "id": "pairing",
    "code": "481902",
    "url": LINK,
    "expiresIn": 300,
    "qr": ["".join(map(str, row)) for row in segno.make(LINK, error="m", micro=False).matrix],
}
PENDING = {"id": "pairing", "state": "pending", "expiresIn": 300, "triesLeft": 5}


async def hang_up(context: BrowserContext, root: Path) -> None:
    real = str(root)

    async def answer(route: Route) -> None:
        if route.request.resource_type != "fetch":
            return await route.fallback()
        body = (route.request.post_data or "").replace(HOME, real)
        url = route.request.url.replace(HOME, real).replace("%2Fhome%2Fme", real.replace("/", "%2F"))
        got = await route.fetch(url=url, post_data=body or None)
        return await route.fulfill(response=got, body=(await got.text()).replace(real, HOME))

    async def pairing(route: Route) -> None:
        body = PAIRING if route.request.method == "POST" else PENDING
        await route.fulfill(status=200, content_type="application/json", body=json.dumps(body))

    def socket(lane: WebSocketRoute) -> None:
        hub = lane.connect_to_server()
        lane.on_message(lambda text: hub.send(_swap(text, HOME, real)))
        hub.on_message(lambda text: lane.send(_swap(text, real, HOME)))

    await context.route("**/*", answer)
    await context.route("**/pairings*", pairing)
    await context.route("**/pairings/*", pairing)
    await context.route_web_socket("**/ws*", socket)


def _swap(text: str | bytes, old: str, new: str) -> str | bytes:
    return text.replace(old, new) if isinstance(text, str) else text.replace(old.encode(), new.encode())
