"""The Agent Client Protocol as a dialect: its updates, requests and answers to unified events, and back."""

from .content import to_block, to_content
from .effects import NamedFiles
from .project import Projector, to_updates
from .translate import Requested, Translator
from .updates import is_plain, read_update

__all__ = [
    "NamedFiles",
    "Projector",
    "Requested",
    "Translator",
    "is_plain",
    "read_update",
    "to_block",
    "to_content",
    "to_updates",
]
