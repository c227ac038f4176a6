"""How children of tests take signals: as a program does that a user starts, whatever the tests' runner does.

A runner in the background of a script (`nohup make test &`) ignores SIGINT and SIGHUP. Children inherit that, across
`exec` as well, and a test that sends one of them a Ctrl-C would wait in vain.
"""

from __future__ import annotations

import signal


def default_signals() -> None:
    """In a child, before it becomes another program: `subprocess.Popen(…, preexec_fn=default_signals)`.

    Python then makes SIGINT a `KeyboardInterrupt`, which it does not where that is ignored.
    """
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
