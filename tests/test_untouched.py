"""The guard of tests/conftest.py: each kind of leftover is named, and put back where that can be done."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.untouched import Running, Settings, lasting, set_policy, umask

pytest_plugins = ["pytester"]

#: For what is meant to be left: it need not be waited for.
AT_ONCE = 0.1
SLEEPS = [sys.executable, "-c", "import time; time.sleep(600)"]


def another_handler() -> None:
    signal.signal(signal.SIGUSR1, lambda *_: None)


def another_level() -> None:
    logging.getLogger("streams").setLevel(logging.CRITICAL)


def a_new_loggers_level() -> None:
    logging.getLogger("tests.of_a_logger_that_is_new").setLevel(logging.ERROR)


def another_handler_of_log_lines() -> None:
    logging.getLogger().addHandler(logging.NullHandler())


def another_policy() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.14 warns of asking for one
        set_policy(asyncio.DefaultEventLoopPolicy())


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda: os.umask(0o123), "the umask 0o123 (it was "),
        (lambda: os.chdir("/"), "the working directory /"),
        (lambda: os.environ.update(LEFT_BEHIND="1"), "the variable LEFT_BEHIND"),
        (lambda: os.environ.pop("PATH"), "the variable PATH"),
        (another_handler, "a handler of SIGUSR1: "),
        (another_level, "the logger streams: level 50 (it was 0)"),
        (a_new_loggers_level, "the logger tests.of_a_logger_that_is_new: level 40"),
        (another_handler_of_log_lines, "the logger root: handlers "),
        (lambda: logging.disable(logging.INFO), "logging.disable(20)"),
        (gc.disable, "the garbage collector (False, "),
        (lambda: gc.set_threshold(5, 6, 7), "the garbage collector (True, (5, 6, 7)) (it was "),
        (lambda: sys.setswitchinterval(0.25), "the interpreter's switch interval 0.25 s"),
        (another_policy, "the event-loop policy <"),
    ],
)
def test_a_setting_is_named_and_put_back(change: Callable[[], object], named: str) -> None:
    logging.getLogger("streams")
    before = Settings.now()
    change()
    (left,) = before.put_back()
    assert left.startswith(named)
    now = Settings.now()
    assert before.put_back() == []
    assert (now.umask, now.folder, now.environment) == (before.umask, before.folder, before.environment)


def test_a_process_that_nothing_has_changed_leaves_nothing() -> None:
    settings, running = Settings.now(), Running.now()
    assert (settings.put_back(), running.ended(AT_ONCE)) == ([], [])


def test_the_umask_is_read_without_a_change() -> None:
    before = os.umask(0o027)
    try:
        assert (umask(), umask()) == (0o027, 0o027)
    finally:
        os.umask(before)


def test_a_connection_is_named_with_whom_it_talks_to() -> None:
    before = Running.now()
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with socket.create_connection(address) as connection:
            named = before.ended(AT_ONCE)
            (mine,) = [line for line in named if f"the open file {connection.fileno()} " in line]
            assert mine.endswith(f" to {address}")
    assert before.ended() == []


def test_an_open_file_is_named(tmp_path: Path) -> None:
    before = Running.now()
    with (tmp_path / "words").open("w") as file:
        assert before.ended(AT_ONCE) == [f"the open file {file.fileno()} -> {tmp_path / 'words'}"]
    assert before.ended() == []


def test_an_open_connection_is_named() -> None:
    before = Running.now()
    with socket.socket() as left:
        (named,) = before.ended(AT_ONCE)
        assert named.startswith(f"the open file {left.fileno()} -> socket:[")


def test_a_thread_is_named() -> None:
    before, end = Running.now(), threading.Event()
    thread = threading.Thread(target=end.wait, name="counts sheep")
    thread.start()
    assert before.ended(AT_ONCE) == ["the thread counts sheep"]
    end.set()
    thread.join()


def test_a_thread_that_is_about_to_end_is_waited_for() -> None:
    before, end = Running.now(), threading.Event()
    threading.Thread(target=end.wait).start()
    threading.Timer(AT_ONCE, end.set).start()
    assert before.ended() == []


def test_a_child_is_named_and_killed() -> None:
    before = Running.now()
    child = subprocess.Popen(SLEEPS)
    assert before.ended(AT_ONCE) == [f"the child {child.pid}: {' '.join(SLEEPS)}"]
    assert not Path(f"/proc/{child.pid}").exists()
    assert before.ended() == []
    child.wait()


def test_a_child_that_was_not_waited_for_is_named() -> None:
    before = Running.now()
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    (named,) = before.ended(AT_ONCE)
    assert named.startswith(f"the child {child.pid}: python")
    assert named.endswith(", which has ended, and was not waited for")
    child.wait()


def test_what_lasts_is_not_left_behind() -> None:
    before = Running.now()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert len(before.ended(AT_ONCE)) == 2
    with lasting():
        ours, theirs = socket.socketpair()
    with ours, theirs:
        assert before.ended(AT_ONCE) == []


GUARD = """
from tests.conftest import _as_it_was, _as_the_module_found_it
"""
TESTS = """
import os, subprocess, sys, threading
import pytest

def test_a_setting(monkeypatch):
    monkeypatch.setenv("OF_THE_TEST", "undone before anything is compared")
    os.umask(0o077)

def test_a_setting_of_the_one_before():
    assert os.umask(0o022) == 0o022

def test_nothing():
    pass

async def test_what_its_loop_has_going():
    import asyncio
    await asyncio.to_thread(int)

@pytest.fixture(scope="module")
def shared():
    started = [subprocess.Popen(["sleep", "600"])]
    yield started
    for one in started:
        one.kill()
        one.wait()

def test_what_a_shared_fixture_starts_meanwhile(shared):
    shared.append(subprocess.Popen(["sleep", "600"]))
"""


@pytest.mark.slow
def test_a_test_that_leaves_something_fails_and_the_next_finds_nothing(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process of its own, with the fixtures of these tests."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    pytester.makeconftest(GUARD)
    pytester.makepyfile(TESTS)
    before = os.umask(0o022)
    try:
        result = pytester.runpytest_subprocess("-p", "no:randomly", "-o", "asyncio_mode=auto", "-o", "addopts=")
    finally:
        os.umask(before)
    result.assert_outcomes(passed=5, errors=1)
    result.stdout.fnmatch_lines(
        ["*ERROR at teardown of test_a_setting *", "left behind: the umask 0o077 (it was 0o022)"]
    )
