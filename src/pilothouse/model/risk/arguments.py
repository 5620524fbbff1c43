"""Reading a command's arguments: which options it has, with which values, and what is left."""

from __future__ import annotations

from ..shell import Command, Word


def has(command: Command, *options: str) -> bool:
    """Whether an option is given, also with a value attached by `=`."""
    return any(word.text in options or word.text.partition("=")[0] in options for word in command.arguments)


def letters(command: Command, wanted: str) -> bool:
    """Whether a short option with one of these letters is given, alone or in a cluster."""
    for word in command.arguments:
        text = word.text
        if len(text) > 1 and text[0] == "-" and text[1] != "-" and any(letter in wanted for letter in text[1:]):
            return True
    return False


def value(command: Command, *options: str) -> list[Word]:
    """The values of options: the next word, or what is attached by `=` or to a short option."""
    found: list[Word] = []
    words = command.arguments
    for index, word in enumerate(words):
        text = word.text
        if text in options:
            found.extend(words[index + 1 : index + 2])
            continue
        name, equals, rest = text.partition("=")
        if equals and name in options:
            found.append(Word(rest, word.static, word.glob, rest))
            continue
        if text[:2] == "--":
            # long options may be cut short as long as they are clear
            if len(name) > 3 and any(option.startswith(name) for option in options):
                found.extend([Word(rest, word.static, word.glob, rest)] if equals else words[index + 1 : index + 2])
        elif text[:1] == "-":
            for option in options:
                position = text.find(option[1], 1) if len(option) == 2 else -1
                if position > 0:
                    attached = text[position + 1 :]
                    found.extend(
                        [Word(attached, word.static, word.glob, attached)] if attached else words[index + 1 : index + 2]
                    )
    return found


def plain(command: Command) -> list[Word]:
    """The arguments that are not options."""
    return [word for word in command.arguments if not word.text.startswith("-")]


def subcommand(command: Command) -> str:
    """The first argument that is not an option."""
    return next((word.text for word in command.arguments if not word.text.startswith("-")), "")
