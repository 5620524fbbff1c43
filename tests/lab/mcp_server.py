"""A server of the Model Context Protocol on stdio, with one tool: `shout` gives a text back in capitals."""

import json
import sys

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
TOOL = {"name": "shout", "description": "A text in capitals", "inputSchema": SCHEMA}

for line in sys.stdin:
    message = json.loads(line)
    match message.get("method"):
        case "initialize":
            version = message["params"].get("protocolVersion", "2025-06-18")
            server = {"name": "lab", "version": "1"}
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
        case "tools/list":
            result = {"tools": [TOOL]}
        case "tools/call":
            text = message["params"]["arguments"]["text"].upper()
            result = {"content": [{"type": "text", "text": text}]}
        case _:
            result = {}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
