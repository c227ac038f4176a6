"""The page's blocks about frameworks run, one after the other, beside a worker."""

from __future__ import annotations

import re
from typing import Any

from conftest import ROOT

PAGE = (ROOT / "client" / "README.md").read_text(encoding="utf-8").partition("## Agent frameworks")[2]


def test_each_block_runs(url: str) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == 6
    known: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block.replace("http://127.0.0.1:8000", url), "<block>", "exec"), known)
    known["session"]._inner.close()
    known["memory"].close()
