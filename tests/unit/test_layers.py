"""Imports flow one way: acp ← model ← {log, dialects, adapters} ← hub ← server ← app ← cli."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "pilothouse"
LAYERS = [
    {"acp", "offer", "locks", "plain_files"},
    {"model"},
    {"agents"},
    {"log", "dialects", "adapters"},
    {"hub"},
    {"server"},
    {"web", "config", "terminal", "remote"},
    {"editor"},
    {"app"},
    {"cli"},
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
# agents are programs on the protocol library and the pure model; nothing of the hub is in them
ONLY = {
    "agents": {"acp", "model", "plain_files", "agents"},
    "acp": {"acp"},
    "terminal": {"model", "dialects", "terminal"},
    "config": {"model", "config"},
    "remote": {"acp", "model", "remote"},
    "offer": set(),
    "locks": set(),
    "plain_files": set(),
    # the bridge is to start at once and to stay small: nothing of the hub or the server is in it
    "editor": {"acp", "offer", "config", "remote", "editor"},
}
# inside the hub as well, imports flow one way; modules beside the folders put them together
HUB = ["errors", "recording", "client", "approvals", "agent", "mirror", "session", "external", "startup", "hub"]
# pure parts: no I/O, no loop, no clock
PURE = {"model", "dialects"}
IMPURE = {"asyncio", "socket", "subprocess", "sqlite3", "threading", "time", "random", "os", "pathlib"}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def imports(path: Path, *, with_types: bool = True) -> set[str]:
    """Absolute names of everything a module imports, even inside functions; and what only type checkers import."""
    package = ("pilothouse", *path.relative_to(SOURCE).with_suffix("").parts)
    found: set[str] = set()
    tree = ast.parse(path.read_text())
    if not with_types:
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
                node.body.clear()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = (
                package[: -node.level or None]
                if path.name != "__init__.py" or node.level == 0
                else package[: -node.level]
            )
            prefix = ".".join(base) + "." if node.level else ""
            module = prefix + (node.module or "")
            found.add(module.rstrip("."))
            if node.module is None or node.level:
                found |= {f"{module.rstrip('.')}.{alias.name}" for alias in node.names}
    return found


def part(name: str) -> str | None:
    pieces = name.split(".")
    return pieces[1] if pieces[0] == "pilothouse" and len(pieces) > 1 else None


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_from_its_own_layer_and_below(path: Path) -> None:
    here = path.relative_to(SOURCE).with_suffix("").parts[0]
    if here == "__init__":
        return
    assert here in RANK, f"{here} has no place in the layers"
    for name in imports(path):
        there = part(name)
        if there is None or there not in RANK:
            continue
        assert RANK[there] <= RANK[here], f"{path.name} of {here} imports {name}"
        if RANK[there] == RANK[here] and there != here:
            raise AssertionError(f"{here} and {there} are side by side, yet {path.name} imports {name}")
        if here in ONLY:
            assert there in ONLY[here], f"{here} may import {ONLY[here]}, not {name}"


@pytest.mark.parametrize(
    "path",
    [path for path in modules() if path.is_relative_to(SOURCE / "hub")],
    ids=lambda path: str(path.relative_to(SOURCE)),
)
def test_folders_of_the_hub_import_only_from_those_before(path: Path) -> None:
    here = path.relative_to(SOURCE / "hub").with_suffix("").parts[0]
    for name in imports(path):
        pieces = name.split(".")
        if pieces[:2] == ["pilothouse", "hub"] and len(pieces) > 2 and pieces[2] in HUB and here != "__init__":
            assert HUB.index(pieces[2]) <= HUB.index(here), f"{path.relative_to(SOURCE)} imports {name}"


def test_no_cycle_of_imports_even_inside_functions() -> None:
    names = {path: ".".join(("pilothouse", *path.relative_to(SOURCE).with_suffix("").parts)) for path in modules()}
    # a package only collects its modules
    graph = {name: imports(path, with_types=False) for path, name in names.items() if path.name != "__init__.py"}
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " -> ".join((*above[above.index(name) :], name))
        if name not in done:
            for other in graph[name] & graph.keys() - {name}:
                visit(other, (*above, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def test_pure_parts_touch_no_io() -> None:
    for path in modules():
        if path.relative_to(SOURCE).parts[0] in PURE:
            assert not {name.split(".")[0] for name in imports(path)} & IMPURE, path


def test_the_acp_library_needs_only_msgspec() -> None:
    code = (
        "import sys\n"
        "import pilothouse.acp, pilothouse.acp.core, pilothouse.acp.stdio, pilothouse.acp.websocket\n"
        "import pilothouse.acp.contrib\n"
        "allowed = {'pilothouse', 'msgspec', 'typing_extensions'} | set(sys.stdlib_module_names)\n"
        "print(sorted({m.split('.')[0] for m in sys.modules} - allowed - {'__main__', '__mp_main__'}))\n"
    )
    loaded = subprocess.check_output([sys.executable, "-I", "-c", code], text=True).strip()
    names = set(ast.literal_eval(loaded))
    assert {name for name in names if not name.startswith(("_", "sitecustomize"))} == set()


def test_importing_the_library_does_not_start_asyncio() -> None:
    code = "import sys, pilothouse.acp; print('asyncio' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


def test_everything_announced_can_be_imported() -> None:
    code = "import pilothouse.acp as a; missing = [n for n in a.__all__ if not hasattr(a, n)]; print(missing)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
