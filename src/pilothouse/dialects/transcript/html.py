"""A session as one HTML page to keep or to share: a static one, and one that can be searched and played.

The static page has no scripts and loads nothing, and its policy says so to the browser. Text is escaped where it is
inserted; the agent's Markdown is rendered with raw HTML escaped, links only to web and mail addresses, and pictures as
links, because a remote picture would tell its server who reads the page.

The playable page comes from a template of the web build, with its own script and styles allowed by their hashes and
everything else forbidden; so it must be written unchanged but for its markers. Nothing inserted there can close the
element it goes into: HTML is escaped by its maker, and JSON has no `<`.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from hashlib import sha256
from html import escape
from typing import Any

import msgspec
from markdown_it import MarkdownIt

from ...model.events import Event, encode_event
from ...model.records import ImageContent
from ...model.session import Session, sound
from ..texts import clean, duration, ending, is_told, shorten_middle, shown, totals, undescribed_command, unfenced
from .entries import (
    ApprovalEntry,
    ArtifactEntry,
    CompactionEntry,
    CustomEntry,
    ErrorEntry,
    NotificationEntry,
    QuestionEntry,
    TextEntry,
    ThinkingEntry,
    TodoListEntry,
    ToolCallEntry,
    TurnEndEntry,
)
from .view import transcript

_PICTURE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+")
_WEB = re.compile(r"(?:https?|mailto):", re.IGNORECASE)

STYLE = """
:root { color-scheme: light dark; --dim: #667; --line: #8884; --add: #1a7f37; --del: #b3261e; --box: #8881; }
@media (prefers-color-scheme: dark) { :root { --dim: #99a; --add: #57c26d; --del: #ff8a80; } }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0; } h1, h2, h3, h4 { line-height: 1.25; }
pre, code { font: 13px/1.45 ui-monospace, monospace; }
pre { background: var(--box); padding: .6rem .8rem; border-radius: 6px; overflow-x: auto; }
pre.wrap { white-space: pre-wrap; overflow-wrap: anywhere; }
table { border-collapse: collapse; } td, th { border: 1px solid var(--line); padding: .2rem .6rem; }
.dim, .facts { color: var(--dim); font-size: .85rem; } .facts { margin: .2rem 0 2rem; }
.user { background: var(--box); border-radius: 10px; padding: .6rem 1rem; margin: 1.5rem 0 1rem 15%;
  white-space: pre-wrap; overflow-wrap: anywhere; }
details { border: 1px solid var(--line); border-radius: 6px; padding: .35rem .7rem; margin: .4rem 0; }
summary { cursor: pointer; overflow-wrap: anywhere; } summary .dim { margin-left: .5rem; }
.add { color: var(--add); } .del { color: var(--del); } .ok { color: var(--add); } .bad { color: var(--del); }
ul.plan { list-style: none; padding-left: .5rem; }
.thought { color: var(--dim); font-style: italic; white-space: pre-wrap; }
img { max-width: 100%; }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def to_html(session: Session) -> str:
    """The page."""
    page = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="referrer" content="no-referrer">
<title>{title_of(session)}</title>
<style>{STYLE}</style>
</head>
<body>
{body_of(session)}
</body>
</html>
"""
    text: str = sound(page)
    return text


def title_of(session: Session) -> str:
    """What the page is called, as HTML."""
    return escape(clean(session.title or f"Session {session.id}"))


def body_of(session: Session) -> str:
    """What the page shows, as HTML that needs no more than `STYLE`."""
    facts = [session.agent, session.model or "", session.working_directory, session.started_at, *totals(session)]
    body = "\n".join(part for entry in transcript(session) for part in _WRITERS[type(entry)](entry))
    return f"""<h1>{title_of(session)}</h1>
<p class="facts">{" · ".join(escape(clean(fact)) for fact in facts if fact)}</p>
{body}"""


def _markdown() -> MarkdownIt:
    reader = MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(["table", "strikethrough"])
    reader.disable("image")
    reader.validateLink = lambda url: _WEB.match(url) is not None  # type: ignore[method-assign]
    return reader


def _text(entry: TextEntry) -> Iterator[str]:
    if entry.role != "assistant":
        yield f'<div class="user">{escape(clean(entry.text))}</div>'
    elif entry.text:
        yield f'<div class="agent">{_markdown().render(clean(entry.text))}</div>'
    for block in entry.content or ():
        if isinstance(block, ImageContent) and _PICTURE.fullmatch(block.url):
            yield f'<p><img alt="" src="{escape(block.url)}"></p>'
        elif block.__struct_config__.tag != "text":
            where = getattr(block, "url", None) or getattr(block, "uri", "")
            about = f"{block.__struct_config__.tag} {shorten_middle(shown(str(where)), 200)}"
            yield f'<p class="dim">[{escape(about)}]</p>'


def _thinking(entry: ThinkingEntry) -> Iterator[str]:
    if entry.text:
        yield _folded('<span class="dim">thinking</span>', f'<div class="thought">{escape(clean(entry.text))}</div>')


_ICONS = {"completed": '<span class="ok">✓</span>', "cancelled": "⊘"}


def _tool(entry: ToolCallEntry) -> Iterator[str]:
    facts = [entry.status if entry.status != "completed" else "", duration(entry.duration) if entry.duration else ""]
    head = f"{_ICONS.get(entry.status, '<span class=bad>✗</span>')} {escape(entry.verb)} "
    head += f"<code>{escape(shown(entry.detail or entry.title or entry.name))}</code>"
    head += f'<span class="dim">{escape(" · ".join(filter(None, facts)))}</span>'
    body = "".join(map(_diff, entry.diffs))
    if entry.output:
        body += f'<pre class="wrap">{escape(clean(unfenced(entry.output)[0]))}</pre>'
    if entry.error is not None and not is_told(entry.error.message, entry.output):
        body += f'<p class="bad">{escape(clean(entry.error.message))}</p>'
    yield _folded(head, body, opened=bool(entry.diffs) or entry.attention)


def _diff(diff: Any) -> str:
    lines = []
    for line in shown(diff.diff).splitlines():
        kind = {"+": "add", "-": "del", "@": "dim"}.get(line[:1])
        lines.append(f'<span class="{kind}">{escape(line)}</span>' if kind else escape(line))
    more = f"\n… {diff.omitted:,} more lines" if diff.omitted else ""
    counted = f"+{diff.lines_added} −{diff.lines_removed}"
    return f'<p class="dim">{escape(shown(diff.display_path))} {counted}</p><pre>{chr(10).join(lines)}{more}</pre>'


def _todos(entry: TodoListEntry) -> Iterator[str]:
    boxes = {"completed": "☑", "in_progress": "▸"}
    items = (f"<li>{boxes.get(todo.status, '☐')} {escape(clean(todo.content))}</li>" for todo in entry.todos)
    yield f'<ul class="plan">{"".join(items)}</ul>'
    if entry.text:
        yield f'<pre class="wrap">{escape(clean(entry.text))}</pre>'


def _approval(entry: ApprovalEntry) -> Iterator[str]:
    outcome = "waiting" if entry.pending else "allowed" if entry.approved else "not allowed"
    by = entry.decided_by or entry.resolved_by or ""
    why = " — ".join(filter(None, [f"{outcome} by {by}" if by else outcome, entry.reason or ""]))
    if entry.resolved_by == "cancelled":
        why = "cancelled"
    reasons = "".join(f"<li>{escape(shown(reason))}</li>" for reason in (*entry.notes, *entry.risk_reasons))
    head = f"? {escape(shown(entry.description or entry.tool_name))} "
    head += f'<span class="dim">{escape(entry.risk_level)} risk · {escape(clean(why))}</span>'
    command = undescribed_command(entry.preview, entry.description)
    body = f'<pre class="wrap">{escape(command)}</pre>' if command else ""
    yield _folded(head, body + (f"<ul>{reasons}</ul>" if reasons else ""))


def _question(entry: QuestionEntry) -> Iterator[str]:
    answer = entry.outcome or "not answered"
    if entry.answer is not None:
        answer = f"{answer}: {entry.answer}"
    yield f'<p>? {escape(clean(entry.question))} <span class="dim">{escape(clean(answer))}</span></p>'


def _notification(entry: NotificationEntry) -> Iterator[str]:
    yield f'<p class="dim">{escape(clean(f"{entry.title} {entry.message}"))}</p>'


def _error(entry: ErrorEntry) -> Iterator[str]:
    yield f'<p class="bad">✗ {escape(clean(entry.error.message))}</p>'


def _compaction(entry: CompactionEntry) -> Iterator[str]:
    yield _folded('<span class="dim">conversation compacted</span>', f"<pre>{escape(clean(entry.summary))}</pre>")


def _artifact(entry: ArtifactEntry) -> Iterator[str]:
    about = entry.artifact if isinstance(entry.artifact, Mapping) else {}
    yield f'<p class="dim">artifact {escape(shown(str(about.get("name") or about.get("path") or "")))}</p>'


def _custom(entry: CustomEntry) -> Iterator[str]:
    """Facts that have no place in a page for people."""
    yield from ()


def _turn_end(entry: TurnEndEntry) -> Iterator[str]:
    yield f'<p class="dim">{escape(ending(entry.stop_reason, entry.duration))}</p>'


def _folded(head: str, body: str, *, opened: bool = False) -> str:
    if not body:
        return f"<details><summary>{head}</summary></details>"
    return f"<details{' open' if opened else ''}><summary>{head}</summary>{body}</details>"


_WRITERS: Mapping[type[Any], Callable[[Any], Iterator[str]]] = {
    TextEntry: _text,
    ThinkingEntry: _thinking,
    ToolCallEntry: _tool,
    TodoListEntry: _todos,
    QuestionEntry: _question,
    ApprovalEntry: _approval,
    NotificationEntry: _notification,
    ErrorEntry: _error,
    CompactionEntry: _compaction,
    ArtifactEntry: _artifact,
    CustomEntry: _custom,
    TurnEndEntry: _turn_end,
}


_NAMES = ("plain-style-hash", "title", "plain-style", "plain", "recording")
_MARKER = re.compile("{{(" + "|".join(_NAMES) + ")}}")
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<\u2028\u2029"}


def to_page(template: str, session: Session, events: Iterable[Event]) -> str:
    """The template filled in. Raises ValueError if it is no such template."""
    texts, names = _divided(template)
    values = {
        "plain-style-hash": "sha256-" + b64encode(sha256(STYLE.encode()).digest()).decode(),
        "title": title_of(session),
        "plain-style": STYLE,
        "plain": body_of(session),
        "recording": _recording(session, events),
    }
    whole = [text + values[name] for text, name in zip(texts, names, strict=False)]
    page: str = sound("".join([*whole, texts[-1]]))
    return page


def _divided(template: str) -> tuple[list[str], list[str]]:
    """The texts between markers, and the markers. Done before anything is put in: a session may quote a marker."""
    parts = _MARKER.split(template)
    texts, names = parts[::2], parts[1::2]
    if sorted(names) != sorted(_NAMES):
        raise ValueError(f"expected a template with each of {', '.join(_NAMES)} once, got {', '.join(names) or 'none'}")
    return texts, names


def _recording(session: Session, events: Iterable[Event]) -> str:
    """What the script plays, as JSON in which no text can be taken for markup."""
    title = msgspec.json.encode(sound(session.title)).decode()
    listed = b",\n".join(map(encode_event, events)).decode()
    return f'{{"title":{title},"events":[\n{listed}\n]}}'.translate(_ESCAPES)
