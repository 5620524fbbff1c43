"""How a phone gets to the hub: whether an address leads there from other machines, and what to say if not."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

__all__ = ["FROM_A_PHONE", "is_loopback"]

FROM_A_PHONE = "For a phone: `serve --host … --tls-cert … --tls-key …`; see `pilothouse serve --help`."


def is_loopback(url: str) -> bool:
    """Whether only this machine gets to that address."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
