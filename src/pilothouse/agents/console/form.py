"""Questions with typed answers, asked as lines of text."""

from __future__ import annotations

from collections.abc import Sequence

from ...acp import (
    ElicitationBooleanPropertySchema,
    ElicitationContentValue,
    ElicitationIntegerPropertySchema,
    ElicitationMultiSelectPropertySchema,
    ElicitationNumberPropertySchema,
    ElicitationPropertySchema,
    ElicitationStringPropertySchema,
    StringMultiSelectItems,
    TitledMultiSelectItems,
)

__all__ = ["choices", "default_of", "parse", "question"]


def question(name: str, schema: ElicitationPropertySchema) -> str:
    """A field on one line: what it is, what may be chosen, what is taken if nothing is typed."""
    parts = [getattr(schema, "title", None) or name]
    if offered := choices(schema):
        parts.append(f"({'/'.join(offered)})")
    default = default_of(schema)
    if isinstance(default, bool):
        parts.append("[yes]" if default else "[no]")
    elif default is not None:
        parts.append(f"[{', '.join(default) if isinstance(default, list) else default}]")
    return " ".join(parts)


def default_of(schema: ElicitationPropertySchema) -> ElicitationContentValue | None:
    default: ElicitationContentValue | None = getattr(schema, "default", None)
    return default


def choices(schema: ElicitationPropertySchema) -> list[str]:
    """The values that may be chosen; empty when any will do."""
    if isinstance(schema, ElicitationStringPropertySchema):
        return schema.enum or [option.const for option in schema.one_of or ()]
    if isinstance(schema, ElicitationMultiSelectPropertySchema):
        if isinstance(schema.items, StringMultiSelectItems):
            return schema.items.enum
        if isinstance(schema.items, TitledMultiSelectItems):
            return [option.const for option in schema.items.any_of]
    return ["yes", "no"] if isinstance(schema, ElicitationBooleanPropertySchema) else []


def parse(schema: ElicitationPropertySchema, text: str) -> ElicitationContentValue:
    """The value that a line stands for. Raises ValueError with what was expected."""
    offered = choices(schema)
    if isinstance(schema, ElicitationBooleanPropertySchema):
        return _chosen(text, offered) == "yes"
    if isinstance(schema, ElicitationMultiSelectPropertySchema):
        return [_chosen(word, offered) for word in text.replace(",", " ").split()]
    if isinstance(schema, (ElicitationIntegerPropertySchema, ElicitationNumberPropertySchema)):
        whole = isinstance(schema, ElicitationIntegerPropertySchema)
        try:
            value = int(text) if whole else float(text)
        except ValueError:
            raise ValueError(f"expected a {'whole ' * whole}number") from None
        low, high = schema.minimum, schema.maximum
        if (low is not None and value < low) or (high is not None and value > high):
            raise ValueError(f"expected a number from {low} to {high}")
        return value
    return _chosen(text, offered) if offered else text


def _chosen(word: str, offered: Sequence[str]) -> str:
    """One of what is offered, by its place, its name or the beginning of its name."""
    if word.strip().isdecimal() and 0 < int(word) <= len(offered):
        return offered[int(word) - 1]
    found = [choice for choice in offered if choice.lower().startswith(word.strip().lower())]
    if len(found) != 1 or not word.strip():
        raise ValueError(f"expected one of {', '.join(offered)}")
    return found[0]
