"""A model's service on this machine, and a client of it that nothing of this machine's environment reaches."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr

from schemas.settings import RaterSettings
from streams.models.chat import ChatModel
from tests.support.openai_server import OpenAIServer


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither another service's settings nor a proxy."""
    for name in ("API_KEY", "BASE_URL", "ORG_ID", "PROJECT_ID", "ADMIN_KEY", "CUSTOM_HEADERS"):
        monkeypatch.delenv(f"OPENAI_{name}", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
async def chat(server: OpenAIServer) -> AsyncIterator[ChatModel]:
    model = ChatModel(RaterSettings(SecretStr("sk-test"), server.base_url, "model-1", 2, 10.0))
    yield model
    await model.close()
