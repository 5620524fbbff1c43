"""Both in one: starts the agent beside it and lends it the console."""

import asyncio
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from acp_root import PROTOCOL_VERSION, spawn_agent_process

HERE = Path(__file__).resolve().parent


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise RuntimeError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


async def main() -> int:
    console = load(HERE / "console_client.py")
    client = console.Console()
    async with spawn_agent_process(client, sys.executable, str(HERE / "full_agent.py")) as (conn, process):
        await conn.initialize(protocol_version=PROTOCOL_VERSION, client_capabilities=None)
        session = await conn.new_session(mcp_servers=[], cwd=str(HERE))
        await console.converse(conn, session.session_id)
    print(f"the agent ended with {process.returncode}")
    return process.returncode or 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
