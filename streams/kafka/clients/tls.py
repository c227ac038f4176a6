"""Makes the TLS context from the settings. If a file cannot be used, the error names its setting and its path."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import NoReturn

from schemas.errors import SettingsError
from schemas.settings import KafkaSettings

CERTIFICATE, KEY = b"-----BEGIN CERTIFICATE", b"PRIVATE KEY-----"


def ssl_context(kafka: KafkaSettings) -> ssl.SSLContext | None:
    """Return the TLS context; None if the protocol has no TLS.

    Never prompts for a passphrase. Raises `SettingsError` if a file cannot be used.
    """
    if "SSL" not in kafka.security_protocol:
        return None
    cafile, certfile, keyfile = kafka.ssl_cafile, kafka.ssl_certfile, kafka.ssl_keyfile
    if cafile is not None:
        _holds("ssl_cafile", cafile, CERTIFICATE, "certificate")
    try:
        context = ssl.create_default_context(cafile=cafile)
    except (OSError, ValueError) as exc:
        _refuse("ssl_cafile", f"{cafile} cannot be used: {_said(exc)}", exc)
    if certfile is None:
        if keyfile is not None:
            _refuse("ssl_certfile", f"is not set, but kafka.ssl_keyfile is {keyfile}")
        return context
    _holds("ssl_certfile", certfile, CERTIFICATE, "certificate")
    if keyfile is not None:
        _holds("ssl_keyfile", keyfile, KEY, "private key")
    elif KEY not in certfile.read_bytes():
        _refuse("ssl_keyfile", f"is not set, and {certfile} contains no private key in PEM format")
    _load(context, certfile, keyfile)
    return context


def _load(context: ssl.SSLContext, certfile: Path, keyfile: Path | None) -> None:
    setting, key = ("ssl_certfile", certfile) if keyfile is None else ("ssl_keyfile", keyfile)

    def passphrase() -> NoReturn:  # without this callback, OpenSSL would prompt at the terminal, or wait forever
        _refuse(
            setting,
            f"{key} is encrypted, and there is no setting for a passphrase: decrypt it (openssl pkey -in {key} "
            "-out …), and let only the worker's user read it",
        )

    try:
        context.load_cert_chain(certfile, keyfile, passphrase)
    except (OSError, ValueError) as exc:
        if isinstance(exc, ssl.SSLError) and exc.reason == "KEY_VALUES_MISMATCH":
            _refuse(setting, f"{key} is not the key of {certfile}", exc)
        _refuse(setting, f"{key} cannot be used with {certfile}: {_said(exc)}", exc)


def _holds(setting: str, path: Path, wanted: bytes, what: str) -> None:
    try:
        content = path.read_bytes()
    except OSError as exc:
        _refuse(setting, f"{path}: {_said(exc)}", exc)
    if wanted not in content:
        _refuse(setting, f"{path} contains no {what} in PEM format")


def _said(exc: Exception) -> str:
    return (isinstance(exc, OSError) and exc.strerror) or type(exc).__name__


def _refuse(setting: str, problem: str, cause: Exception | None = None) -> NoReturn:
    raise SettingsError([f"kafka.{setting}: {problem}"]) from cause
