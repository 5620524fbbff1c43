"""The bridge is to start at once and to stay small: what it must not load."""

from __future__ import annotations

import subprocess
import sys

from pilothouse import __version__
from pilothouse.acp import methods, schema
from pilothouse.offer import PROTOCOL_VERSION, TOKEN_WAY, offer

HEAVY = {"pilothouse.hub", "pilothouse.server", "pilothouse.log", "pilothouse.model", "pilothouse.app", "sqlite3"}
HEAVY |= {"uvicorn", "starlette", "tree_sitter", "psutil", "rich"}


def test_the_bridge_loads_nothing_of_the_hub() -> None:
    code = (
        "import sys, pilothouse.cli, pilothouse.editor.pump, pilothouse.acp.stdio, pilothouse.editor.requests\n"
        "print(*sys.modules)"
    )
    loaded = set(subprocess.check_output([sys.executable, "-c", code], text=True).split())
    assert "pilothouse.editor.bridge" in loaded
    found = loaded & HEAVY
    assert found <= {"pilothouse.model"}, found
    assert not {name for name in loaded if name.startswith("pilothouse.model.")} - {"pilothouse.model.errors"}


def test_what_is_offered_fits_the_protocol() -> None:
    assert PROTOCOL_VERSION == methods.PROTOCOL_VERSION
    told = offer(version=__version__, auth_methods=[TOKEN_WAY], meta={"agent": "demo", "agents": None})
    read = schema.InitializeResponse.model_validate(told)
    assert read.agent_capabilities is not None
    assert read.agent_capabilities.load_session
    assert told["_meta"] == {"pilothouse": {"agent": "demo"}}
    assert "_meta" not in offer(version=__version__, meta={"agent": None})
