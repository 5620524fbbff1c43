"""The old home of the adapter contract; it is in `contract`."""

from .contract import *  # noqa: F403
