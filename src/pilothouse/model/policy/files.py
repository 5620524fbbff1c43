"""Which rule covers a path that a tool or a redirection names."""

from __future__ import annotations

from .globs import is_wild, path_glob
from .places import may_expand_to_secret, path_covered, path_free
from .rules import Rule

__all__ = ["cover_path", "search_refusal"]


def cover_path(rules: list[Rule], path: str, workspace: str | None, *, writing: bool) -> tuple[str, Rule | None]:
    """The rule that covers a path, or why none does."""
    why = ""
    for rule in rules:
        if rule.pattern is None:
            answer = path_free(path, workspace, writing=writing)
        else:
            answer = path_covered(path_glob(rule.pattern), path, workspace, writing=writing)
        if answer is None and not writing and _may_be_secret(path):
            answer = "a wildcard in it may stand for a credential file"
        if answer is None:
            return "", rule
        why = why or answer
    return why, None


def search_refusal(path: str, workspace: str | None) -> str | None:
    try:
        choices = path_glob(path).alternatives
    except ValueError:
        return "its pattern cannot be read"
    answer = None
    for choice in choices:
        answer = answer or path_free("/".join(choice), workspace, writing=False)
    if answer is None and any(part.startswith(".") and is_wild(part) for part in path.split("/")):
        answer = "a wildcard in it may stand for a credential file"
    return answer


def _may_be_secret(path: str) -> bool:
    return any(is_wild(part) and may_expand_to_secret(part) for part in path.replace("\\", "/").split("/"))
