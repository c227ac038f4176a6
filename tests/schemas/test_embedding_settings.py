"""Settings of the embedding model that its backend does not use."""

from __future__ import annotations

import pytest

from schemas.settings import Settings


@pytest.mark.parametrize(
    ("embedding", "unused"),
    [
        ({}, ""),
        ({"model": "", "api_key": "", "query_prefix": ""}, ""),
        ({"batch_size": 8, "timeout_seconds": 5}, ""),
        ({"model": "BAAI/bge-m3"}, "embedding.model"),
        ({"backend": "auto", "api_key": "sk-1", "base_url": "http://a/v1"}, "embedding.api_key, embedding.base_url"),
        ({"backend": "use", "dimensions": 256}, "embedding.dimensions"),
        ({"backend": "e5", "query_prefix": "query: "}, "embedding.query_prefix"),
        ({"backend": "sentence-transformers", "model": "m", "query_prefix": "q: "}, ""),
        ({"backend": "sentence-transformers", "query_input_type": "query"}, "embedding.query_input_type"),
        ({"backend": "openai", "model": "m", "api_key": "sk-1", "base_url": "http://a/v1", "dimensions": 8}, ""),
    ],
)
def test_settings_of_another_backend_are_a_warning(embedding: dict[str, object], unused: str) -> None:
    """Else the memories' model is quietly another than the one that the settings seem to name."""
    settings = Settings.load(embedding=embedding)
    told = [str(warning) for warning in settings.warnings() if "embedding" in warning.what]
    backend = settings.embedding.backend
    what = f"{unused}: no effect with embedding.backend {backend}; set another backend, or leave them out"
    assert told == ([what] if unused else [])
