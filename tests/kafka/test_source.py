"""`make test-kafka` finds Apache Kafka, or says in one line what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.kafka.source import MISSING, Distribution, found

ROOT = Path(__file__).parent.parent.parent


def test_without_a_distribution_and_an_engine_it_is_one_line_and_exit_1(tmp_path: Path) -> None:
    environment = {**os.environ, "KAFKA_HOME": str(tmp_path), "PATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "tests.kafka"], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{MISSING}\n")


def test_a_distribution_goes_before_docker(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kafka-server-start.sh").touch()
    assert found({"KAFKA_HOME": str(tmp_path)}) == Distribution(tmp_path / "bin")
