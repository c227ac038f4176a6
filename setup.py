"""Compiles the rules that every message goes through, where SILTSTONE_COMPILE=1 asks for it: see `make wheel`.

All else about the package is in pyproject.toml. The sources run as they are, and decide the same (`make
test-compiled`); compiled, a message takes a seventh less of a processor. mypyc compiles what it can check the types
of, so that is no build in isolation: everything that is imported has to be installed, and the extra `compile`.
"""

from __future__ import annotations

import os

from setuptools import setup

#: Their values (structs, protocols that others inherit from) stay Python: decision.py, session_changes.py. So does
#: what reads texts for the estimator: compiled, it summed up evidence to other numbers.
COMPILED = [
    "streams/intake/rules/advance.py",
    "streams/intake/rules/exchanges.py",
    "streams/intake/rules/excluded_sources.py",
    "streams/language/phrases.py",
    "streams/intake/rules/promotion.py",
    "streams/intake/rules/scoring.py",
    "streams/intake/rules/session.py",
    "streams/intake/rules/summary_trigger_watch.py",
    "streams/intake/rules/summary_triggers.py",
]

if os.environ.get("SILTSTONE_COMPILE") == "1":
    from mypyc.build import mypycify

    setup(ext_modules=mypycify(COMPILED, opt_level="3"))
else:
    setup()
