"""TLS: the cookie never travels in the clear."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import subprocess
from pathlib import Path

from pilothouse.hub.hub import Hub
from pilothouse.server.app import application
from pilothouse.server.listener import Listener, tcp_socket
from pilothouse.server.state import Server
from tests.support.attacks import AUTHORIZED, Attempts, raw, status_of
from tests.support.http_client import PATIENCE
from tests.support.servers import TOKEN


def certificate(place: Path) -> tuple[Path, Path]:
    key, cert = place / "key.pem", place / "cert.pem"
    line = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    command = [*line.split(), "-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    return cert, key


async def test_under_tls_the_cookie_never_travels_in_the_clear(tmp_path: Path, attempts: Attempts) -> None:
    cert, key = certificate(tmp_path)
    trust = ssl.create_default_context(cafile=str(cert))
    async with Hub(home=tmp_path / "home") as hub:
        server = Server(hub, token=TOKEN)
        bound = tcp_socket("127.0.0.1", 0)
        port = bound.getsockname()[1]
        async with Listener(application(server), [bound], server.limits, certificate=cert, key=key):

            async def ask(text: str) -> bytes:
                reader, writer = await asyncio.open_connection("localhost", port, ssl=trust)
                try:
                    head = f"{text}\r\nHost: localhost:{port}\r\nConnection: close\r\nContent-Length: 0\r\n"
                    writer.write(f"{head}Authorization: Bearer {TOKEN}\r\n\r\n".encode())
                    async with asyncio.timeout(PATIENCE):
                        return await reader.read()
                finally:
                    writer.close()

            made = await ask("POST /login-links HTTP/1.1")
            url = json.loads(made.partition(b"\r\n\r\n")[2])["url"]
            assert url.startswith(f"https://localhost:{port}/login?ticket=")
            answer = await ask(f"GET {url.partition(str(port))[2]} HTTP/1.1")
            found = re.search(rb"set-cookie: (.*)\r\n", answer)
            assert found is not None
            assert found[1].endswith(b"HttpOnly; SameSite=Strict; Secure")
            foreign = await ask(f"GET /agents HTTP/1.1\r\nOrigin: http://localhost:{port}")
            attempts.refused(status_of(foreign), 403)  # the same page, loaded without TLS
            own = await ask(f"GET /agents HTTP/1.1\r\nOrigin: https://localhost:{port}")
            assert status_of(own) == 200
            plain = await raw(port, f"GET /agents HTTP/1.1\r\n{AUTHORIZED}\r\n".encode())
            attempts.refused(status_of(plain) or 400, 400)
