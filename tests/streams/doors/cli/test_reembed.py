"""`siltstone reembed`: options that the backend does not use."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.quick_commands import siltstone


@pytest.mark.parametrize(
    ("backend", "words", "told"),
    [
        (
            "auto",
            ["--model", "BAAI/bge-m3"],
            "embedding.backend is auto: name the backend with --backend beside --model",
        ),
        ("auto", ["--dimensions", "256"], "name the backend with --backend beside --dimensions"),
        ("auto", ["--backend", "e5", "--model", "m"], "the backend e5 has no use for --model"),
        ("openai", ["--backend", "use", "--query-prefix", "q: "], "the backend use has no use for --query-prefix"),
        (
            "auto",
            ["--backend", "sentence-transformers", "--dimensions", "8", "--query-input-type", "query"],
            "the backend sentence-transformers has no use for --dimensions, --query-input-type",
        ),
    ],
)
async def test_an_option_without_effect_is_refused(tmp_path: Path, backend: str, words: list[str], told: str) -> None:
    """Else the command says that all is as wished, and the model stays another one."""
    result = await siltstone("reembed", *words, "--data", str(tmp_path), SILTSTONE_EMBEDDING__BACKEND=backend)
    assert (result.returncode, told in result.stderr) == (2, True), result.stderr
