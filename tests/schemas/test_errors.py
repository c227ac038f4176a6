"""The errors' tree, as their module shows it."""

from __future__ import annotations

import inspect
import re

from schemas import errors
from schemas.errors import SiltstoneError


def test_the_tree_that_is_shown_is_the_classes() -> None:
    ours = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, SiltstoneError)]
    shown, above = {}, {-1: "SiltstoneError"}
    for branch, name in re.findall(r"^((?:│|├|└|─| )+)(\w+)  ", errors.__doc__ or "", re.MULTILINE):
        depth = len(branch) // 4 - 1
        shown[name], above[depth] = above[depth - 1], name
    assert shown == {kind.__name__: kind.mro()[1].__name__ for kind in ours if kind is not SiltstoneError}
