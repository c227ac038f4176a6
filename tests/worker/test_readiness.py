"""What a worker says of itself to anybody who asks."""

from __future__ import annotations

import httpx
import pytest

from schemas.errors import DataDirError
from streams.app import Siltstone


async def test_where_the_data_directory_is_is_said_to_nobody_who_asks(
    worker: Siltstone, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_dir = worker.settings.data_dir
    monkeypatch.setattr(worker.hot, "halted", DataDirError(data_dir / "shards" / "3", "no room"))
    answer = await http.get("/readyz")
    assert (answer.status_code, str(data_dir) in answer.text) == (503, False)
    assert "data_dir/shards/3: no room" in answer.text
