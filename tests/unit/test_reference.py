"""What the package announces can be imported, and what the reference pages say is what the code says."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

import pilothouse
import pilothouse.model as model
from pilothouse.dialects.packets import PACKETS
from pilothouse.dialects.packets.shapes import wire_names
from pilothouse.model import COMMANDS, EVENT_TYPES, capabilities, commands, discovery, errors, events, records
from pilothouse.model.risk import REASONS

ROOT = Path(__file__).parents[2]
PAGE_NAMES = ("events.md", "commands.md", "packets.md", "risk.md")


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_reference", ROOT / "tools" / "generate_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def generator() -> Any:
    return load_generator()


# -- the pages ----------------------------------------------------------------------------------------------------


def test_every_page_is_current(generator: Any, capsys: pytest.CaptureFixture[str]) -> None:
    status = generator.main(["--check"])
    assert (status, capsys.readouterr().err) == (0, "")
    assert tuple(generator.PAGES) == PAGE_NAMES


def test_a_stale_page_fails_the_check_by_name(
    generator: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generator, "ROOT", tmp_path)
    monkeypatch.setattr(generator, "REFERENCE", tmp_path)
    assert generator.main([]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(PAGE_NAMES)
    assert generator.main(["--check"]) == 0
    (tmp_path / "commands.md").write_text("old")
    (tmp_path / "risk.md").unlink()
    capsys.readouterr()
    assert generator.main(["--check"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(" is stale")[0] for line in said] == ["commands.md", "risk.md"]
    assert (tmp_path / "commands.md").read_text() == "old"


@pytest.mark.parametrize("hash_base", ["0", "1"])
def test_the_pages_do_not_depend_on_the_order_of_sets(hash_base: str) -> None:
    command = [sys.executable, ROOT / "tools" / "generate_reference.py", "--check"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env={"PYTHONHASHSEED": hash_base}
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("page", PAGE_NAMES)
def test_every_link_within_a_page_leads_somewhere(page: str) -> None:
    text = (ROOT / "docs" / "reference" / page).read_text()
    headings = {re.sub(r"[^\w\- ]", "", line.lstrip("# ")).lower().replace(" ", "-") for line in text.splitlines()}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= headings
    assert "memory at 0x" not in text


def rows(page: str) -> list[list[str]]:
    lines = (ROOT / "docs" / "reference" / page).read_text().splitlines()
    return [[part.strip() for part in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines if line.startswith("|")]


@pytest.mark.parametrize(("page", "types"), [("events.md", EVENT_TYPES), ("commands.md", COMMANDS)])
def test_every_type_and_every_field_is_on_its_page(page: str, types: dict[str, Any]) -> None:
    table = rows(page)
    told: dict[str, dict[str, str]] = {}
    owner = ""
    for row in table:
        if len(row) == 4 and row[1].startswith("`"):
            owner = row[0].strip("`") or owner
            told.setdefault(owner, {})[row[1].strip("`")] = row[3]
    for name, cls in types.items():
        assert [f"`{name}`", f"`{cls.__name__}`"] in [row[:2] for row in table]
        fields = {
            item.encode_name: "required" if item.required else "optional"
            for item in msgspec.structs.fields(cls)
            if item.encode_name not in ("seq", "sessionId", "timestamp")
        }
        assert told.get(name, {}) == fields


def test_every_packet_and_every_field_of_it_is_on_its_page() -> None:
    text = (ROOT / "docs" / "reference" / "packets.md").read_text()
    for kind, cls in PACKETS.items():
        (section,) = re.findall(rf"^## `{kind}`\n(.*?)^## ", text, re.DOTALL | re.MULTILINE)
        assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == wire_names(cls)


def test_every_reason_for_a_risk_is_on_its_page_under_its_level() -> None:
    level = ""
    told = {}
    for line in (ROOT / "docs" / "reference" / "risk.md").read_text().splitlines():
        level = line[3:].lower() if line.startswith("## ") else level
        if level and line.startswith("| `"):
            code, text = (part.strip(" `") for part in line.strip("|").split("|"))
            told[code] = (level, text)
    assert told == REASONS


def test_every_struct_says_what_it_is() -> None:
    for cls in (*EVENT_TYPES.values(), *COMMANDS.values()):
        assert cls.__doc__
        assert cls.__doc__.rstrip().endswith(".")


def test_the_examples_of_the_concept_page_work() -> None:
    text = (ROOT / "docs" / "concepts" / "events.md").read_text()
    (event,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    assert events.decode_event(event).type == "message:delta"
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["event"].session_id == "s-1"
    events.reset_all_sequences()


# -- the names ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", [pilothouse, model], ids=["pilothouse", "pilothouse.model"])
def test_every_announced_name_resolves_and_is_listed(package: ModuleType) -> None:
    assert package.__all__ == sorted(package.__all__)
    for name in package.__all__:
        assert getattr(package, name) is not None
        assert name in dir(package)


def test_a_name_that_is_not_announced_is_an_attribute_error() -> None:
    for package in (pilothouse, model):
        with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
            _ = package.nonsense


def test_the_helpers_are_the_same_in_both_places() -> None:
    for name in (
        "assess_risk",
        "categorize_tool",
        "create_event",
        "decide",
        "describe_tool_call",
        "reset_all_sequences",
        "reset_sequence",
    ):
        assert getattr(pilothouse, name) is getattr(model, name)


def public_names(module: ModuleType) -> set[str]:
    """What a module defines itself for others to use."""
    if hasattr(module, "__all__"):
        return set(module.__all__)
    return {
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__ and not name.startswith("_")
    }


@pytest.mark.parametrize(
    "module", [capabilities, commands, discovery, errors, events, records], ids=lambda module: module.__name__
)
def test_the_model_announces_what_its_vocabulary_modules_define(module: ModuleType) -> None:
    inner = {"EventMeta"}  # how events are made, not what they are
    assert public_names(module) - set(model.__all__) - inner == set()


def loaded_by(statement: str) -> set[str]:
    code = f"import sys, json; {statement}; print(json.dumps(sorted(sys.modules)))"
    names = json.loads(subprocess.check_output([sys.executable, "-c", code], text=True, timeout=60))
    return {name.partition(".")[0] for name in names} | set(names)


def test_importing_the_package_loads_neither_the_types_nor_the_shell_parser() -> None:
    assert not loaded_by("import pilothouse") & {"msgspec", "tree_sitter", "pilothouse.model", "typing"}
    assert not loaded_by("import pilothouse.model") & {"msgspec", "tree_sitter"}


def test_making_an_event_does_not_load_the_shell_parser() -> None:
    loaded = loaded_by("from pilothouse import create_event")
    assert "msgspec" in loaded
    assert "tree_sitter" not in loaded
