"""`python -m pilothouse.cli`."""

from . import main

main(prog_name="pilothouse")
