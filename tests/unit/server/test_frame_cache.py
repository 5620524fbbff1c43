"""The cache of frames that clients share."""

from __future__ import annotations

from pilothouse.server.frame_cache import MAX_BYTES, MAX_COUNT, FrameCache


def test_the_least_recently_used_frames_are_dropped() -> None:
    cache = FrameCache()
    for number in range(MAX_COUNT):
        cache.put(number, number, 1)
    assert cache.get(0) == 0
    cache.put("new", "frames", 1)
    assert cache.get(1) is None
    assert (cache.get(0), cache.get("new")) == (0, "frames")


def test_the_size_of_all_frames_is_bounded() -> None:
    cache = FrameCache()
    size = MAX_BYTES // 4
    for number in range(20):
        cache.put(number, b"", size)
    assert [number for number in range(20) if cache.get(number) is not None] == [16, 17, 18, 19]


def test_frames_that_are_too_large_are_not_kept() -> None:
    cache = FrameCache()
    cache.put("small", b"", 1)
    cache.put("large", b"", MAX_BYTES + 1)
    assert (cache.get("small"), cache.get("large")) == (None, None)
