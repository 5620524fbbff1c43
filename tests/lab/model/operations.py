"""Operations of a script as calls of the tools that an agent really offers, its names and arguments.

    {"op": "read", "path": p}
    {"op": "write", "path": p, "content": c}
    {"op": "edit", "path": p, "old": a, "new": b}
    {"op": "bash", "cmd": c, "escalate": true}
    {"op": "raw", "name": n, "input": {…}}

`escalate` asks to leave the sandbox, for agents that ask nobody inside it. An agent without a tool for files gets the
shell's way of doing it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

NAMES = {
    "read": ("Read", "read", "read_file", "text_editor"),
    "write": ("Write", "write", "write_file", "apply_patch"),
    "edit": ("Edit", "edit", "replace", "apply_patch"),
    "bash": ("Bash", "bash", "run_shell_command", "shell", "exec_command", "shell_command"),
}
ARGUMENTS = {
    "path": ("file_path", "filePath", "path", "absolute_path"),
    "content": ("content", "file_text"),
    "old": ("old_string", "oldString", "old_str", "before"),
    "new": ("new_string", "newString", "new_str", "after"),
    "cmd": ("command", "cmd"),
    "patch": ("input", "patch", "patchText"),
}
BY_TYPE = {"boolean": False, "integer": 1, "number": 1, "array": [], "null": None}


class Tool(NamedTuple):
    """A tool of a request: the schema of its arguments, and `function` or `custom` (free text)."""

    schema: Any
    kind: str = "function"


class Call(NamedTuple):
    id: str
    name: str
    input: Any
    kind: str


def call_of(operation: dict[str, Any], tools: dict[str, Tool]) -> Call | None:
    """None when the agent offers nothing to do it with."""
    kind = operation["op"]
    if kind == "raw":
        return Call("", operation["name"], operation.get("input", {}), "function")
    name = _find(kind, tools)
    if name is None:
        shell = _by_shell(operation)
        return call_of(shell, tools) if shell is not None else None
    tool = tools[name]
    if name.endswith("apply_patch"):
        patch = _patch(operation)
        return Call("", name, patch if tool.kind == "custom" else _arguments(tool, {"patch": patch}), tool.kind)
    values = {key: value for key, value in operation.items() if key in ARGUMENTS}
    made = _arguments(tool, values)
    if operation.get("escalate") and "sandbox_permissions" in _properties(tool.schema):
        made |= {"sandbox_permissions": "require_escalated", "justification": "May I?"}
    return Call("", name, made, tool.kind)


def _find(kind: str, tools: dict[str, Tool]) -> str | None:
    for wanted in NAMES.get(kind, ()):
        for name in tools:  # `developer__shell` is a shell too
            if name == wanted or name.rpartition("__")[2] == wanted:
                return name
    return None


def _by_shell(operation: dict[str, Any]) -> dict[str, Any] | None:
    match operation:
        case {"op": "read", "path": path}:
            command = f"cat '{path}'"
        case {"op": "write", "path": path, "content": content}:
            command = f"cat > '{path}' <<'EOF'\n{content}EOF"
        case {"op": "edit", "path": path, "old": old, "new": new}:
            command = f"sed -i 's/{old}/{new}/' '{path}'"
        case _:
            return None
    return {"op": "bash", "cmd": command}


def _patch(operation: dict[str, Any]) -> str:
    path = operation["path"]
    if operation["op"] == "write":
        body = "".join(f"+{line}\n" for line in operation["content"].rstrip("\n").split("\n"))
        return f"*** Begin Patch\n*** Add File: {path}\n{body}*** End Patch\n"
    change = f"-{operation['old']}\n+{operation['new']}\n"
    return f"*** Begin Patch\n*** Update File: {path}\n@@\n{change}*** End Patch\n"


def _arguments(tool: Tool, values: dict[str, Any]) -> dict[str, Any]:
    """Each value under the tool's own name for it, and something for whatever else it requires."""
    properties = _properties(tool.schema)
    made: dict[str, Any] = {}
    for meaning, value in values.items():
        name = next((name for name in ARGUMENTS[meaning] if name in properties), None)
        if name is not None:
            is_list = "array" in str(properties[name].get("type")).lower()
            made[name] = ["bash", "-lc", value] if is_list else value
    if "description" in properties:
        made["description"] = "As told"
    for name in (tool.schema or {}).get("required") or []:
        if name not in made:
            made[name] = placeholder(properties.get(name), name)
    return made


def _properties(schema: Any) -> dict[str, Any]:
    found = schema.get("properties") if isinstance(schema, dict) else None
    return found if isinstance(found, dict) else {}


def placeholder(schema: Any, name: str) -> Any:
    """A value that a schema allows."""
    if not isinstance(schema, dict):
        return f"some {name}"
    for key in ("default", "const"):
        if schema.get(key) is not None:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return placeholder(schema[key][0], name)
    kind = schema.get("type")
    kind = str(kind[0] if isinstance(kind, list) else kind or "string").lower()
    if kind == "object":
        properties = _properties(schema)
        return {key: placeholder(properties.get(key), key) for key in schema.get("required") or []}
    return BY_TYPE.get(kind, f"some {name}")
