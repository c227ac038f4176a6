"""Files for TLS: each mistake names the setting and the path."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from schemas.errors import SettingsError
from schemas.settings import KafkaSettings
from streams.kafka.clients.tls import ssl_context
from tests.kafka.certificates import Authority, Issued, encrypted


@pytest.fixture(scope="module")
def issued(tmp_path_factory: pytest.TempPathFactory) -> Issued:
    return Authority.new(tmp_path_factory.mktemp("tls"), "authority").issue("client")


def refused(**files: Path | None) -> str:
    with pytest.raises(SettingsError) as error:
        ssl_context(KafkaSettings(security_protocol="SSL", **files))
    (problem,) = error.value.problems
    return problem


@pytest.mark.parametrize("name", ["ssl_cafile", "ssl_certfile", "ssl_keyfile"])
def test_a_file_that_is_not_there_is_named_with_its_setting(name: str, issued: Issued, tmp_path: Path) -> None:
    files = {"ssl_certfile": issued.certificate, "ssl_keyfile": issued.key, name: tmp_path / "none.pem"}
    assert refused(**files) == f"kafka.{name}: {tmp_path / 'none.pem'}: No such file or directory"


@pytest.mark.parametrize("name", ["ssl_cafile", "ssl_certfile", "ssl_keyfile"])
def test_a_file_of_something_else_is_named_with_its_setting(name: str, issued: Issued, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.pem"
    wrong.write_text("nothing of the kind\n")
    files = {"ssl_certfile": issued.certificate, "ssl_keyfile": issued.key, name: wrong}
    what = "private key" if name == "ssl_keyfile" else "certificate"
    assert refused(**files) == f"kafka.{name}: {wrong} contains no {what} in PEM format"


def test_an_encrypted_key_is_refused_and_nobody_is_asked_for_its_passphrase(issued: Issued) -> None:
    key = encrypted(issued.key)
    problem = refused(ssl_certfile=issued.certificate, ssl_keyfile=key)
    assert problem.startswith(f"kafka.ssl_keyfile: {key} is encrypted")
    assert f"openssl pkey -in {key}" in problem


def test_an_encrypted_key_of_the_older_kind_is_refused_as_well(issued: Issued, tmp_path: Path) -> None:
    key = tmp_path / "older.key"
    behind = ("-aes256", "-passout", "pass:something", "-in", str(issued.key), "-out", str(key))
    subprocess.run(["openssl", "ec", *behind], check=True, capture_output=True)
    assert refused(ssl_certfile=issued.certificate, ssl_keyfile=key).startswith(
        f"kafka.ssl_keyfile: {key} is encrypted"
    )


def test_a_key_of_another_certificate_is_told(issued: Issued, tmp_path: Path) -> None:
    other = Authority.new(tmp_path, "another").issue("other")
    problem = refused(ssl_certfile=issued.certificate, ssl_keyfile=other.key)
    assert problem == f"kafka.ssl_keyfile: {other.key} is not the key of {issued.certificate}"


def test_a_certificate_needs_its_key_and_a_key_its_certificate(issued: Issued) -> None:
    assert refused(ssl_keyfile=issued.key) == f"kafka.ssl_certfile: is not set, but kafka.ssl_keyfile is {issued.key}"
    problem = refused(ssl_certfile=issued.certificate)
    assert problem == f"kafka.ssl_keyfile: is not set, and {issued.certificate} contains no private key in PEM format"


def test_a_file_may_hold_both(issued: Issued) -> None:
    assert ssl_context(KafkaSettings(security_protocol="SSL", ssl_certfile=issued.both)) is not None
    assert ssl_context(KafkaSettings(ssl_certfile=issued.both)) is None
