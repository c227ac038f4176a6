"""A second look at the tests that failed: each runs once more, alone, after all others.

A test that passes then is flaky. The run goes on and names it in a line `FLAKY: …`; both outputs lie in
`build/flaky/`. A failure that repeats fails the run, and so do more than `MOST_FLAKY` flaky tests. `CONTRIBUTING.md`
says what to do with a flaky test: look for its cause, as for that of any other failure.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support import shared_servers

#: Under which the plugin is registered; what it runs is run without it.
NAME: Final = "second-look"
MOST_FLAKY: Final = 3
#: With more failures than this, the run has failed whatever a second look shows.
MOST_LOOKED_AT: Final = 10


class SecondLook:
    """A pytest plugin, for the process that reports: with xdist its controller."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._failures: dict[str, pytest.TestReport] = {}
        self._flaky: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The first failure of each test: its set-up, its call or its tear-down."""
        if report.failed:
            self._failures.setdefault(report.nodeid, report)

    # After xdist has ended its workers: the second look is alone on the machine.
    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus != pytest.ExitCode.TESTS_FAILED or not 0 < len(self._failures) <= MOST_LOOKED_AT:
            return
        for nodeid, failure in self._failures.items():
            again = subprocess.run(
                [sys.executable, "-m", "pytest", *self._options(), nodeid],
                cwd=self._config.rootpath,
                # Servers of its own: the shared ones may be what the test failed by.
                env={name: value for name, value in os.environ.items() if name != shared_servers.VARIABLE},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            self._keep(nodeid, failure, again.stdout)
            if again.returncode == pytest.ExitCode.OK:
                self._flaky.append(nodeid)
        self._report_as_flaky()
        if len(self._flaky) == len(self._failures) <= MOST_FLAKY:
            session.exitstatus = pytest.ExitCode.OK

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for nodeid in self._flaky:
            terminalreporter.write_line(f"FLAKY: {nodeid}: {_first_line(self._failures[nodeid])}")
        if self._flaky:
            terminalreporter.write_line(f"Both outputs of each flaky test lie in {self._folder}.")
        if len(self._flaky) > MOST_FLAKY:
            terminalreporter.write_line(f"More than {MOST_FLAKY} flaky tests fail the run.")

    @property
    def _folder(self) -> Path:
        return self._config.rootpath / "build" / "flaky"

    def _options(self) -> list[str]:
        """The test alone, with the data of the first run: what depends on the seed fails again."""
        options = ["-p", f"no:{NAME}", "-p", "no:cacheprovider"]
        if self._config.pluginmanager.hasplugin("randomly"):
            options.append(f"--randomly-seed={self._config.getoption('randomly_seed')}")
        if (broker := self._config.getoption("--broker", None)) is not None:
            options.append(f"--broker={broker}")
        return options

    def _keep(self, nodeid: str, failure: pytest.TestReport, again: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        sections = [f"----- {title}\n{text}" for title, text in failure.sections]
        first = "\n".join([failure.longreprtext, *sections])
        name = re.sub(r"[^\w.-]+", "-", nodeid)[-150:]
        (self._folder / f"{name}.txt").write_text(
            f"===== {nodeid}: the failure\n{first}\n\n===== the second look\n{again}", encoding="utf-8"
        )

    def _report_as_flaky(self) -> None:
        """Count flaky tests as such, not as failed, in the last lines of the run."""
        reporter: Any = self._config.pluginmanager.getplugin("terminalreporter")
        for kind in ("failed", "error"):
            reports = reporter.stats.get(kind, [])
            for report in [report for report in reports if getattr(report, "nodeid", None) in self._flaky]:
                reports.remove(report)
                if report is self._failures[report.nodeid]:  # of a test that failed in its tear-down too, one
                    reporter._add_stats("flaky", [report])
            if not reports:
                reporter.stats.pop(kind, None)


def _first_line(failure: pytest.TestReport) -> str:
    crash = getattr(failure.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else failure.longreprtext.strip().rpartition("\n")[2]
    return str(text).strip().partition("\n")[0]
