"""Completing a directory over HTTP, and the QR code of a pairing."""

from __future__ import annotations

from pathlib import Path

from tests.support.servers import serving


async def test_directories_are_completed_and_recent_ones_come_first(tmp_path: Path) -> None:
    (tmp_path / "project" / "inner").mkdir(parents=True)
    async with serving(tmp_path / "home") as served:
        for name in ("project/inner", "project", "project/inner"):
            await served.hub.start_session("demo", tmp_path / name)
        found = (await served.client.request("GET", f"/directories?path={tmp_path}/proj")).json()
        entry = {"name": "project", "path": f"{tmp_path}/project", "isRepository": False}
        assert found == {"path": str(tmp_path), "entries": [entry], "truncated": False, "recent": []}
        recent = (await served.client.request("GET", "/directories")).json()["recent"]
        assert recent == [f"{tmp_path}/project/inner", f"{tmp_path}/project"]
        refused = await served.client.request("GET", "/directories?path=here")
        assert (refused.status, refused.json()["error"]["details"]["field"]) == (422, "path")


async def test_a_pairing_has_its_link_as_a_qr_code(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        rows = (await served.client.request("POST", "/pairings")).json()["qr"]
        assert {len(row) for row in rows} == {len(rows)}
        assert set("".join(rows)) == {"0", "1"}
        finder = ["1111111", "1000001", "1011101", "1011101", "1011101", "1000001", "1111111"]
        assert (
            [row[:7] for row in rows[:7]] == [row[-7:] for row in rows[:7]] == [row[:7] for row in rows[-7:]] == finder
        )
