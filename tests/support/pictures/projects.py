"""The projects that the agents in the pictures work on."""

from __future__ import annotations

from pathlib import Path

__all__ = ["CART", "CART_FIXED", "CODES", "CODES_STRICT", "lay_out"]

CART = '''\
"""The shopping cart. Prices are in cents."""

from dataclasses import dataclass, field


@dataclass
class Item:
    name: str
    price: int
    count: int = 1


@dataclass
class Cart:
    items: list[Item] = field(default_factory=list)
    discount: int = 0

    def add(self, name: str, price: int, count: int = 1) -> None:
        self.items.append(Item(name, price, count))

    def subtotal(self) -> int:
        return sum(item.price * item.count for item in self.items)

    def total(self) -> int:
        """What is to be paid: the subtotal, less the discount."""
        return self.subtotal() - self.discount

    def describe(self) -> str:
        lines = [f"{item.count} x {item.name}" for item in self.items]
        return "\\n".join([*lines, f"total: {self.total() / 100:.2f}"])
'''
CART_FIXED = CART.replace(
    '''\
        """What is to be paid: the subtotal, less the discount."""
        return self.subtotal() - self.discount
''',
    '''\
        """What is to be paid: the subtotal, less the discount in percent."""
        return self.subtotal() - self.reduction()

    def reduction(self) -> int:
        """Rounded down, so that nobody is charged less than agreed."""
        return self.subtotal() * self.discount // 100
''',
).replace('f"total: {self.total() / 100:.2f}"', 'f"total: {self.total() / 100:.2f} EUR"')

TEST_CART = """\
import unittest

from cart import Cart


class CartTest(unittest.TestCase):
    def setUp(self) -> None:
        self.cart = Cart()
        self.cart.add("Coffee", 1250)
        self.cart.add("Filter papers", 375, 2)

    def test_the_total_is_the_sum(self) -> None:
        self.assertEqual(self.cart.total(), 2000)

    def test_a_discount_is_taken_off_in_percent(self) -> None:
        self.cart.discount = 10
        self.assertEqual(self.cart.total(), 1800)
"""

CODES = '''\
"""Discount codes and what they are worth."""

CODES = {"WELCOME": 10, "FRIENDS": 25}


def percent_of(code: str) -> int:
    """The discount of a code in percent, 0 for one that nobody gave out."""
    return CODES.get(code.upper(), 0)


def register(code: str, percent: int) -> None:
    CODES[code.upper()] = percent
'''
CODES_STRICT = (
    CODES.replace(
        '"""Discount codes and what they are worth."""\n',
        '"""Discount codes and what they are worth."""\n\nMOST = 90\n',
    )
    .replace("CODES.get(code.upper(), 0)", "CODES.get(code.strip().upper(), 0)")
    .replace(
        "    CODES[code.upper()] = percent\n",
        """\
    if not 0 < percent <= MOST:
        raise ValueError(f"a discount is 1 to {MOST} percent, not {percent}")
    CODES[code.strip().upper()] = percent
""",
    )
)

FILES = {
    "shop": {"cart.py": CART, "codes.py": CODES, "test_cart.py": TEST_CART, "README.md": "# Shop\n"},
    "website": {"Makefile": "docs:\n\t@echo 38 pages\n", "README.md": "# Website\n"},
    "infra": {"main.tf": 'terraform {\n  required_version = ">= 1.9"\n}\n'},
    "mobile-app": {"README.md": "# Mobile app\n"},
    "api": {"pyproject.toml": '[project]\nname = "api"\n', "README.md": "# API\n"},
}


def lay_out(root: Path) -> None:
    """Write all projects below `root`."""
    for project, files in FILES.items():
        (root / project / ".git").mkdir(parents=True)
        for name, text in files.items():
            (root / project / name).write_text(text)
