#!/usr/bin/env python3
"""Turn the vendored ACP schema into `pilothouse/acp/schema.py` and `pilothouse/acp/methods.py`.

    python tools/generate_schema.py            write both files
    python tools/generate_schema.py --check    fail when they are not current

The unstable schema is a superset of the stable one and is what types come from; the stable one tells which
methods and types are stable. `schema/legacy.json` adds what the schema dropped and agents still send.
The output carries names, types and rules only, none of the schema's prose.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STABLE = ROOT / "schema" / "acp-v1.schema.json"
UNSTABLE = ROOT / "schema" / "acp-v1.unstable.schema.json"
LEGACY = ROOT / "schema" / "legacy.json"
PACKAGE = ROOT / "src" / "pilothouse" / "acp"

Json = dict[str, Any]

# -- names --------------------------------------------------------------------------------------------------------

# Members of unions whose tag msgspec resolves: union -> tag value -> class name.
TAGGED: dict[str, dict[str, str]] = {
    "ContentBlock": {
        "text": "TextContentBlock",
        "image": "ImageContentBlock",
        "audio": "AudioContentBlock",
        "resource_link": "ResourceContentBlock",
        "resource": "EmbeddedResourceContentBlock",
    },
    "ToolCallContent": {
        "content": "ContentToolCallContent",
        "diff": "FileEditToolCallContent",
        "terminal": "TerminalToolCallContent",
    },
    "SessionUpdate": {
        "user_message_chunk": "UserMessageChunk",
        "agent_message_chunk": "AgentMessageChunk",
        "agent_thought_chunk": "AgentThoughtChunk",
        "tool_call": "ToolCallStart",
        "tool_call_update": "ToolCallProgress",
        "plan": "AgentPlanUpdate",
        "plan_update": "AgentPlanContentUpdate",
        "plan_removed": "AgentPlanRemovedUpdate",
    },
    "PlanUpdateContent": {"items": "PlanUpdateItems", "file": "PlanUpdateFile", "markdown": "PlanUpdateMarkdown"},
    "SessionConfigOption": {"select": "SessionConfigOptionSelect", "boolean": "SessionConfigOptionBoolean"},
    "RequestPermissionOutcome": {"cancelled": "DeniedOutcome", "selected": "AllowedOutcome"},
}

# Unions that need a look at the object. Values: how the `Choice` is made, members by class name.
CHOICES: dict[str, Json] = {
    "EmbeddedResourceResource": {"keys": {"text": "TextResourceContents", "blob": "BlobResourceContents"}},
    "McpServer": {
        "tag": "type",
        "tags": {"http": "HttpMcpServer", "sse": "SseMcpServer", "acp": "AcpMcpServer"},
        "default": "McpServerStdio",
    },
    "AuthMethod": {
        "tag": "type",
        "tags": {"terminal": "TerminalAuthMethod", "env_var": "EnvVarAuthMethod"},
        "default": "AuthMethodAgent",
    },
    "SetSessionConfigOptionRequest": {
        "tag": "type",
        "tags": {"boolean": "SetSessionConfigOptionBooleanRequest"},
        "default": "SetSessionConfigOptionSelectRequest",
    },
    "ElicitationFormMode": {
        "keys": {"sessionId": "ElicitationFormSessionMode", "requestId": "ElicitationFormRequestMode"},
    },
    "ElicitationUrlMode": {
        "keys": {"sessionId": "ElicitationUrlSessionMode", "requestId": "ElicitationUrlRequestMode"},
    },
    "CreateFormElicitationRequest": {
        "keys": {
            "sessionId": "CreateFormSessionElicitationRequest",
            "requestId": "CreateFormRequestElicitationRequest",
        },
    },
    "CreateUrlElicitationRequest": {
        "keys": {
            "sessionId": "CreateUrlSessionElicitationRequest",
            "requestId": "CreateUrlRequestElicitationRequest",
        },
    },
    "CreateElicitationRequest": {
        "tag": "mode",
        "tags": {"form": "CreateFormElicitationRequest", "url": "CreateUrlElicitationRequest"},
        "default": "CreateOtherElicitationRequest",
    },
    "ElicitationMode": {
        "keys": {},
        "members": [
            "ElicitationFormSessionMode",
            "ElicitationFormRequestMode",
            "ElicitationUrlSessionMode",
            "ElicitationUrlRequestMode",
        ],
    },
    "CreateElicitationResponse": {
        "tag": "action",
        "tags": {
            "accept": "AcceptElicitationResponse",
            "decline": "DeclineElicitationResponse",
            "cancel": "CancelElicitationResponse",
        },
        "default": "OtherElicitationResponse",
    },
    "ElicitationPropertySchema": {
        "tag": "type",
        "tags": {
            "string": "ElicitationStringPropertySchema",
            "number": "ElicitationNumberPropertySchema",
            "integer": "ElicitationIntegerPropertySchema",
            "boolean": "ElicitationBooleanPropertySchema",
            "array": "ElicitationMultiSelectPropertySchema",
        },
        "default": "ElicitationOtherPropertySchema",
    },
    "MultiSelectItems": {
        "tag": "type",
        "tags": {"string": "StringMultiSelectItems"},
        "keys": {"anyOf": "TitledMultiSelectItems"},
        "default": "OtherMultiSelectItems",
    },
    "StateUpdate": {
        "tag": "state",
        "tags": {
            "running": "RunningStateUpdate",
            "idle": "IdleStateUpdate",
            "requires_action": "RequiresActionStateUpdate",
            "unknown": "UnknownStateUpdate",
        },
        "default": "OtherStateUpdate",
    },
    "MessageMcpResponse": {"keys": {"result": "MessageMcpResult", "error": "MessageMcpError"}},
}

# Catch-all members of open unions: class name -> tag field.
OPEN = {
    "CreateOtherElicitationRequest": "mode",
    "OtherElicitationResponse": "action",
    "ElicitationOtherPropertySchema": "type",
    "OtherMultiSelectItems": "type",
    "OtherStateUpdate": "state",
}

# Structs assembled from several definitions: class name -> (bases or merged definitions, extra properties, tag).
META = {"type": ["object", "null"], "additionalProperties": True, "x-deserialize-default-on-error": True}
SESSION_SCOPE = "ElicitationSessionScope"
REQUEST_SCOPE = "ElicitationRequestScope"
COMPOSED: dict[str, Json] = {
    "HttpMcpServer": {"base": "McpServerHttp", "tag": ("type", "http")},
    "SseMcpServer": {"base": "McpServerSse", "tag": ("type", "sse")},
    "AcpMcpServer": {"base": "McpServerAcp", "tag": ("type", "acp")},
    "TerminalAuthMethod": {"base": "AuthMethodTerminal", "tag": ("type", "terminal")},
    "EnvVarAuthMethod": {"base": "AuthMethodEnvVar", "tag": ("type", "env_var")},
    "SetSessionConfigOptionBooleanRequest": {
        "merge": ["SetSessionConfigOptionRequest"],
        "properties": {"value": {"type": "boolean"}},
        "required": ["value"],
        "tag": ("type", "boolean"),
    },
    "SetSessionConfigOptionSelectRequest": {
        "merge": ["SetSessionConfigOptionRequest"],
        "properties": {"value": {"type": "string"}},
        "required": ["value"],
    },
    "ElicitationFormSessionMode": {"base": SESSION_SCOPE, "merge": ["ElicitationFormMode"]},
    "ElicitationFormRequestMode": {"base": REQUEST_SCOPE, "merge": ["ElicitationFormMode"]},
    "ElicitationUrlSessionMode": {"base": SESSION_SCOPE, "merge": ["ElicitationUrlMode"]},
    "ElicitationUrlRequestMode": {"base": REQUEST_SCOPE, "merge": ["ElicitationUrlMode"]},
    "CreateFormSessionElicitationRequest": {
        "base": SESSION_SCOPE,
        "merge": ["CreateElicitationRequest", "ElicitationFormMode"],
        "tag": ("mode", "form"),
    },
    "CreateFormRequestElicitationRequest": {
        "base": REQUEST_SCOPE,
        "merge": ["CreateElicitationRequest", "ElicitationFormMode"],
        "tag": ("mode", "form"),
    },
    "CreateUrlSessionElicitationRequest": {
        "base": SESSION_SCOPE,
        "merge": ["CreateElicitationRequest", "ElicitationUrlMode"],
        "tag": ("mode", "url"),
    },
    "CreateUrlRequestElicitationRequest": {
        "base": REQUEST_SCOPE,
        "merge": ["CreateElicitationRequest", "ElicitationUrlMode"],
        "tag": ("mode", "url"),
    },
    "AcceptElicitationResponse": {
        "base": "ElicitationAcceptAction",
        "merge": ["CreateElicitationResponse"],
        "tag": ("action", "accept"),
    },
    "DeclineElicitationResponse": {"merge": ["CreateElicitationResponse"], "tag": ("action", "decline")},
    "CancelElicitationResponse": {"merge": ["CreateElicitationResponse"], "tag": ("action", "cancel")},
    "ElicitationStringPropertySchema": {"base": "StringPropertySchema", "tag": ("type", "string")},
    "ElicitationNumberPropertySchema": {"base": "NumberPropertySchema", "tag": ("type", "number")},
    "ElicitationIntegerPropertySchema": {"base": "IntegerPropertySchema", "tag": ("type", "integer")},
    "ElicitationBooleanPropertySchema": {"base": "BooleanPropertySchema", "tag": ("type", "boolean")},
    "ElicitationMultiSelectPropertySchema": {"base": "MultiSelectPropertySchema", "tag": ("type", "array")},
    "StringMultiSelectItems": {"merge": ["StringMultiSelectItems"], "tag": ("type", "string")},
    "RunningStateUpdate": {"merge": ["RunningStateUpdate"], "tag": ("state", "running")},
    "IdleStateUpdate": {"merge": ["IdleStateUpdate", "ErrorStopReason"], "tag": ("state", "idle")},
    "RequiresActionStateUpdate": {"merge": ["RequiresActionStateUpdate"], "tag": ("state", "requires_action")},
    "UnknownStateUpdate": {"merge": ["UnknownStateUpdate"], "tag": ("state", "unknown")},
    "MessageMcpResult": {"properties": {"result": {}, "_meta": META}, "required": ["result"]},
    "MessageMcpError": {"properties": {"error": {"$ref": "#/$defs/McpError"}, "_meta": META}, "required": ["error"]},
    "InitializeProxyRequest": {"base": "InitializeRequest"},
    "InitializeProxyResponse": {"base": "InitializeResponse"},
}

# Names of earlier versions, kept for programs written against them.
ALIASES = {
    "FileSystemCapability": "FileSystemCapabilities",
    "KillTerminalCommandRequest": "KillTerminalRequest",
    "KillTerminalCommandResponse": "KillTerminalResponse",
    "AvailableCommandInput": "UnstructuredCommandInput",
    "CommandInput": "UnstructuredCommandInput",
    "PlanUpdateNotification": "AgentPlanUpdate",
}

# Aliases for fields and parts of fields: definitions that are not objects.
SCALARS = {
    "RequestId": "int | str | None",
    "ErrorCode": "int",
    "ElicitationContentValue": "str | int | float | bool | list[str]",
    "SessionConfigSelectOptions": "list[SessionConfigSelectOption | SessionConfigSelectGroup]",
    "ExtRequest": "Any",
    "ExtResponse": "Any",
    "ExtNotification": "Any",
    "ProxySuccessorResponse": "Any",
}
SKIPPED = re.compile(
    r"^(Agent|Client|Proxy)(Request|Response|Notification)$|^ElicitationFormMode$|^ElicitationUrlMode$"
)

# Python names of the handlers of each method, where they are not `session/x` -> `x_session`.
HANDLERS = {
    "session/new": "new_session",
    "session/load": "load_session",
    "session/list": "list_sessions",
    "session/resume": "resume_session",
    "session/close": "close_session",
    "session/delete": "delete_session",
    "session/fork": "fork_session",
    "session/archive": "archive_session",
    "session/unarchive": "unarchive_session",
    "session/status": "session_status",
    "session/set_title": "set_session_title",
    "session/set_mode": "set_session_mode",
    "session/set_model": "set_session_model",
    "session/set_config_option": "set_config_option",
    "session/prompt": "prompt",
    "session/cancel": "cancel",
    "session/update": "session_update",
    "session/request_permission": "request_permission",
    "providers/list": "list_providers",
    "providers/set": "set_provider",
    "providers/disable": "disable_provider",
    "fs/read_text_file": "read_text_file",
    "fs/write_text_file": "write_text_file",
    "terminal/create": "create_terminal",
    "terminal/output": "terminal_output",
    "terminal/release": "release_terminal",
    "terminal/wait_for_exit": "wait_for_terminal_exit",
    "terminal/kill": "kill_terminal",
    "elicitation/create": "create_elicitation",
    "elicitation/complete": "complete_elicitation",
    "mcp/message": "message_mcp",
    "auth/status": "auth_status",
    "auth/status_update": "auth_status_update",
}


# -- reading the schema -------------------------------------------------------------------------------------------


def load() -> tuple[Json, set[str]]:
    defs: Json = json.loads(UNSTABLE.read_text())["$defs"]
    stable = set(json.loads(STABLE.read_text())["$defs"])
    legacy = json.loads(LEGACY.read_text())
    defs.update(legacy["$defs"])
    for name, extra in legacy["fields"].items():
        defs[name]["properties"].update(extra)
    return defs, stable


def ref_name(node: Json) -> str | None:
    ref = node.get("$ref") or (len(node.get("allOf", ())) == 1 and node["allOf"][0].get("$ref"))
    return ref.rsplit("/", 1)[1] if ref else None


def consts(node: Json) -> list[str] | None:
    """The values of a closed string enum, or None."""
    members = node.get("oneOf")
    if not members or not all(isinstance(m.get("const"), str) for m in members):
        return None
    return [m["const"] for m in members]


def is_open_enum(node: Json) -> bool:
    members = node.get("anyOf") or ()
    return bool(members) and all(m.get("type") == "string" for m in members)


def snake(name: str) -> str:
    return "field_meta" if name == "_meta" else re.sub(r"(?<=[a-z0-9])([A-Z])", lambda m: "_" + m[1].lower(), name)


class Writer:
    def __init__(self, defs: Json, stable: set[str]) -> None:
        self.defs = defs
        self.stable = stable
        self.out: list[str] = []
        self.exported: list[str] = []

    # -- types --

    def type_of(self, node: Json) -> str:
        name = ref_name(node)
        if name:
            return ALIASES.get(name, name)
        if "anyOf" in node:
            rest = [m for m in node["anyOf"] if m.get("type") != "null"]
            inner = " | ".join(dict.fromkeys(self.type_of(m) for m in rest))
            return f"{inner} | None" if len(rest) < len(node["anyOf"]) else inner
        kind = node.get("type")
        if isinstance(kind, list):
            rest = [k for k in kind if k != "null"]
            assert len(rest) == 1, node
            return self.type_of({**node, "type": rest[0]}) + " | None"
        if kind == "array":
            return f"list[{self.type_of(node['items'])}]"
        if kind == "object":
            extra = node.get("additionalProperties")
            return f"dict[str, {self.type_of(extra)}]" if isinstance(extra, dict) else "dict[str, Any]"
        if kind == "integer":
            limits = [f"{k}={node[j]}" for j, k in (("minimum", "ge"), ("maximum", "le")) if j in node]
            return f"Annotated[int, Meta({', '.join(limits)})]" if limits else "int"
        if kind == "string":
            return f'Literal["{node["const"]}"]' if "const" in node else "str"
        if kind in ("boolean", "number"):
            return {"boolean": "bool", "number": "float"}[kind]
        assert kind is None, node
        return "Any"

    # -- emitting --

    def line(self, text: str = "") -> None:
        self.out.append(text)

    def struct(self, name: str, node: Json, base: str = "Model", tag: tuple[str, str] | None = None) -> None:
        head = f"{base}, kw_only=True" + (f', tag_field="{tag[0]}", tag="{tag[1]}"' if tag else "")
        lines: list[str] = []
        flags: dict[str, int] = {}
        required = set(node.get("required", ()))
        for key, prop in node.get("properties", {}).items():
            if tag and key == tag[0]:
                continue
            lines.append("    " + self.field(key, prop, key in required))
            flag = (
                1 * bool(prop.get("x-deserialize-default-on-error"))
                | 2 * bool(prop.get("x-deserialize-skip-invalid-items"))
                | 4 * bool(prop.get("x-deserialize-default-on-null"))
            )
            if flag:
                flags[snake(key)] = flag
        body: list[str] = []
        if flags:
            inherited = f"**{base}.__lenient__, " if base != "Model" else ""
            body.append(
                f"    __lenient__ = {{{inherited}{', '.join(f'{k!r}: {v}' for k, v in flags.items())}}}".replace(
                    "'", '"'
                )
            )
        body += lines
        if tag:
            body += ["    if TYPE_CHECKING:", f'        {snake(tag[0])}: Literal["{tag[1]}"] = "{tag[1]}"']
        self.line(f"class {name}({head}):")
        self.out += body or ["    pass"]
        self.line()
        self.exported.append(name)

    def field(self, key: str, prop: Json, required: bool) -> str:
        name = snake(key)
        tp = self.type_of(prop)
        rename = name != key and key != camel(name)
        named = f', name="{key}"' if rename else ""
        if required and not prop.get("x-deserialize-default-on-null"):
            return f"{name}: {tp}" + (f' = field(name="{key}")' if rename else "")
        if required:
            return f"{name}: {tp} = field(default_factory=empty_list{named})"
        default = prop.get("default")
        target = ref_name(prop)
        if isinstance(default, bool):
            return f"{name}: {tp} = {default}"
        if isinstance(default, str):
            return f'{name}: {tp} = "{default}"'
        if isinstance(default, dict) and target:
            # so that `capabilities.prompt_capabilities.image` always reads
            return f"{name}: {tp} = field(default_factory=lambda: {target}.model_construct(){named})"
        if default in ([], {}):
            return f"{name}: {tp} = field(default_factory={'list' if default == [] else 'dict'}{named})"
        assert default is None, (key, prop)
        if not tp.endswith("| None") and tp != "Any":
            tp += " | None"
        return f"{name}: {tp} = " + (f'field(default=None, name="{key}")' if rename else "None")

    def write_schema(self) -> str:
        defs = self.defs
        self.line('"""ACP schema types. Generated by tools/generate_schema.py; do not edit."""')
        self.line()
        self.line("# ruff: noqa")
        self.line("from __future__ import annotations")
        self.line()
        self.line("from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, Union")
        self.line()
        self.line("from msgspec import Meta")
        self.line()
        self.line("from .lenient import Choice, Open, UnknownContent, UnknownUpdate")
        self.line("from .model import NULL, Model, empty_list, field")
        self.line()
        merged = {name for spec in COMPOSED.values() for name in spec.get("merge", ())}
        unions = {**dict.fromkeys(TAGGED), **dict.fromkeys(CHOICES)}
        tagged_defs = self.tagged_definitions()
        for name, node in defs.items():
            if SKIPPED.match(name) or name in unions or name in ALIASES:
                continue
            if name in SCALARS:
                continue
            values = consts(node)
            if values is not None:
                self.line(f"{name}: TypeAlias = Literal[{', '.join(json.dumps(v) for v in values)}]")
                self.exported.append(name)
            elif is_open_enum(node):
                self.line(f"{name}: TypeAlias = str")
                self.exported.append(name)
            elif node.get("type") in ("string", "integer"):
                self.line(f"{name}: TypeAlias = {self.type_of(node)}")
                self.exported.append(name)
        self.line()
        for name, node in defs.items():
            if name in self.exported or SKIPPED.match(name) or name in unions or name in ALIASES or name in SCALARS:
                continue
            if name in COMPOSED and (name in merged or "base" in COMPOSED[name]):
                continue
            self.struct(name, node, tag=tagged_defs.get(name))
        for union, members in TAGGED.items():
            self.tagged_members(union, members)
        for name, spec in COMPOSED.items():
            self.composed(name, spec)
        for name, tag in OPEN.items():
            self.line(f"class {name}(Open):")
            self.line("    __slots__ = ()")
            self.line(f'    tag_field = "{tag}"')
            self.line()
            self.exported.append(name)
        for union in TAGGED:
            names = self.union_members(union)
            self.line(f"{union}: TypeAlias = Union[{', '.join(names)}]")
            self.exported.append(union)
        for name, tp in SCALARS.items():
            self.exported.append(name)
            if name == "SessionConfigSelectOptions":
                continue
            self.line(
                f"{name}: TypeAlias = Union[{', '.join(tp.split(' | '))}]"
                if " | " in tp
                else f"{name}: TypeAlias = {tp}"
            )
        self.choices()
        for name, target in ALIASES.items():
            self.line(f"{name} = {target}")
            self.exported.append(name)
        self.line()
        self.line("STABLE = frozenset({")
        self.out += [f'    "{n}",' for n in sorted(self.stable & set(self.exported))]
        self.line("})")
        self.line()
        self.line("__all__ = [")
        names = sorted({*self.exported, "NULL", "Open", "UnknownContent", "UnknownUpdate"})
        self.out += [f'    "{n}",' for n in names]
        self.line("]")
        return "\n".join(self.out) + "\n"

    def tagged_definitions(self) -> dict[str, tuple[str, str]]:
        """Definitions that are themselves the members of a union under their own name."""
        found: dict[str, tuple[str, str]] = {}
        for union, members in TAGGED.items():
            node = self.defs[union]
            tag_field = node["discriminator"]["propertyName"]
            for member in node["oneOf"]:
                tag = member["properties"][tag_field]["const"]
                target = ref_name(member)
                if tag not in members and target:
                    found[target] = (tag_field, tag)
        return found

    def tagged_members(self, union: str, members: dict[str, str]) -> None:
        node = self.defs[union]
        tag_field = node["discriminator"]["propertyName"]
        for member in node["oneOf"]:
            tag = member["properties"][tag_field]["const"]
            if tag in members:
                shared = {"properties": dict(node.get("properties", {})), "required": node.get("required", ())}
                self.struct(members[tag], shared, ref_name(member) or "Model", (tag_field, tag))

    def union_members(self, union: str) -> list[str]:
        node = self.defs[union]
        tag_field = node["discriminator"]["propertyName"]
        names = []
        for member in node["oneOf"]:
            tag = member["properties"][tag_field]["const"]
            names.append(TAGGED[union].get(tag) or ref_name(member) or "")
        return names

    def composed(self, name: str, spec: Json) -> None:
        properties: Json = {}
        required: list[str] = []
        for source in spec.get("merge", ()):
            node = self.defs[source]
            properties |= node.get("properties", {})
            required += node.get("required", ())
        properties |= spec.get("properties", {})
        required += spec.get("required", ())
        self.struct(name, {"properties": properties, "required": required}, spec.get("base", "Model"), spec.get("tag"))

    def choices(self) -> None:
        """Unions by `Choice`: a checker sees the plain union, the program the class that picks the member."""
        self.line()
        self.line("if TYPE_CHECKING:")
        options = "SessionConfigSelectOption | SessionConfigSelectGroup"
        for name, spec in CHOICES.items():
            members = [*spec.get("tags", {}).values(), *spec.get("keys", {}).values(), *spec.get("members", ())]
            if spec.get("default"):
                members.append(spec["default"])
            self.line(f"    {name}: TypeAlias = Union[{', '.join(members)}]")
            self.exported.append(name)
        self.line(f"    SessionConfigSelectOptions: TypeAlias = list[{options}]")
        self.line("else:")
        for name, spec in CHOICES.items():
            parts = [f'"{name}"', "module=__name__"]
            if "members" in spec:
                self.line(f"    {name} = Union[{', '.join(spec['members'])}]")
                continue
            if spec.get("tag"):
                parts.append(f'tag="{spec["tag"]}"')
            for group in ("tags", "keys"):
                if spec.get(group):
                    inner = ", ".join(f'"{k}": {v}' for k, v in spec[group].items())
                    parts.append(f"{group}={{{inner}}}")
            if spec.get("default"):
                parts.append(f"default={spec['default']}")
            self.line(f"    {name} = Choice({', '.join(parts)})")
        self.line(
            '    _SelectOption = Choice("SessionConfigSelectOptionOrGroup", module=__name__, '
            'keys={"group": SessionConfigSelectGroup}, default=SessionConfigSelectOption)'
        )
        self.line("    SessionConfigSelectOptions = list[_SelectOption]")
        self.line()

    # -- methods --

    def methods(self) -> dict[str, dict[str, Json]]:
        """By side and wire name: the definitions of what is sent and answered."""
        rows: dict[str, dict[str, Json]] = {"agent": {}, "client": {}, "proxy": {}, "protocol": {}}
        for name, node in self.defs.items():
            method = node.get("x-method")
            if not method:
                continue
            row = rows[node["x-side"]].setdefault(method, {"stable": name in self.stable})
            part = "result" if name.endswith("Response") else "params"
            if name.endswith("Notification") and method == "mcp/message":
                part = "notification"
            row[part] = name
        return rows

    def write_methods(self) -> str:
        rows = self.methods()
        out = [
            '"""ACP method tables. Generated by tools/generate_schema.py; do not edit."""',
            "",
            "# ruff: noqa",
            "from __future__ import annotations",
            "",
            "from typing import Any, NamedTuple",
            "",
            "from . import schema",
            "",
            "",
            "class Method(NamedTuple):",
            '    """One method: its wire name, the name of its handler, and the types of what is sent and answered."""',
            "",
            "    wire: str",
            "    handler: str",
            "    params: Any",
            "    result: Any",
            "    stable: bool",
            "",
            "    @property",
            "    def is_notification(self) -> bool:",
            "        return self.result is None",
            "",
            "",
            "PROTOCOL_VERSION = 1",
            'CANCEL_REQUEST = "$/cancel_request"',
            "",
        ]
        for side in ("agent", "client"):
            table = rows[side]
            out.append(f"{side.upper()}: tuple[Method, ...] = (")
            for method in sorted(table):
                row = table[method]
                params = row.get("params") or row["notification"]
                result = f"schema.{row['result']}" if "result" in row else "None"
                handler = HANDLERS.get(method, method)
                out.append(f'    Method("{method}", "{handler}", schema.{params}, {result}, {row["stable"]}),')
            out += [")", ""]
        for side in ("agent", "client"):
            out.append(f"{side.upper()}_METHODS = {{")
            for method in sorted(rows[side]):
                key = method.replace("/", "_")
                out.append(f'    "{key}": "{method}",')
            out += ["}", ""]
        return "\n".join(out)

    def write_reference(self) -> str:
        """A page with every method, its handler and its types."""
        out = [
            "# Methods",
            "",
            "Generated by `make generate` from the protocol's schema. A handler is a method of your class; it is",
            "called with the fields of its parameters by keyword. Methods that are not stable may change.",
            "",
        ]
        for side, served in (("agent", "an agent serves"), ("client", "a client serves")):
            out += [
                f"## What {served}",
                "",
                "| method | handler | parameters | answer | stable |",
                "| --- | --- | --- | --- | --- |",
            ]
            for method, row in sorted(self.methods()[side].items()):
                params = row.get("params") or row["notification"]
                answer = f"`{row['result']}`" if "result" in row else "none (notification)"
                stable = "yes" if row["stable"] else "no"
                out.append(f"| `{method}` | `{HANDLERS.get(method, method)}` | `{params}` | {answer} | {stable} |")
            out.append("")
        return "\n".join(out)


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def main(argv: list[str]) -> int:
    defs, stable = load()
    outputs = {
        PACKAGE / "schema.py": Writer(defs, stable).write_schema(),
        PACKAGE / "methods.py": Writer(defs, stable).write_methods(),
        ROOT / "docs" / "reference" / "methods.md": Writer(defs, stable).write_reference(),
    }
    stale = [path for path, text in outputs.items() if not path.exists() or path.read_text() != text]
    if "--check" in argv:
        for path in stale:
            print(f"{path.relative_to(ROOT)} is stale: run `python tools/generate_schema.py`", file=sys.stderr)
        return 1 if stale else 0
    for path, text in outputs.items():
        path.write_text(text)
        print(f"wrote {path.relative_to(ROOT)} ({len(text.splitlines())} lines)")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
