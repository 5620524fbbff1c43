"""Small pictures: a page has few colours, so a palette holds them."""

from __future__ import annotations

import io

from PIL import Image

__all__ = ["shrink"]

COLOURS = 256


def shrink(png: bytes) -> bytes:
    """The same picture with a palette of its own."""
    image = Image.open(io.BytesIO(png)).convert("RGB")
    small = image.quantize(COLOURS, method=Image.Quantize.MAXCOVERAGE, kmeans=2)
    out = io.BytesIO()
    small.save(out, "PNG", optimize=True)
    return out.getvalue()
