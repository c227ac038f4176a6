"""Access to an object store by its URL: the operations that checkpoints need. Errors become `StoreUnavailable`.

Credentials, region and endpoint come from the variables that the store's own tools read (`AWS_ACCESS_KEY_ID`,
`AWS_ENDPOINT_URL`, `GOOGLE_APPLICATION_CREDENTIALS`, `AZURE_STORAGE_ACCOUNT_NAME`, …). A store's responses may
contain signatures and keys, so error messages have only the codes of a response.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError

from schemas.errors import StoreFull, StoreMissing, StoreRefused, StoreUnavailable
from tables.paths import synced

Content = bytes | bytearray | memoryview

_FULL: Final = frozenset({"507", "InsufficientStorage", "QuotaExceeded", "XMinioStorageFull", "EntityTooLarge"})
_MISSING: Final = frozenset({"NoSuchBucket", "ContainerNotFound"})
_REFUSED: Final = frozenset({"401", "403"})
_FULL_DISK: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_CLOSED_DISK: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
#: Patterns for the codes in obstore's error texts. `_NO_RANGE` matches if the requested range is past the object's
#: end.
_STATUS: Final = re.compile(r"status code: (\d{3})")
_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
_OS_ERROR: Final = re.compile(r"\(os error (\d+)\)")
_NO_RANGE: Final = re.compile(r"status code: 416|InvalidRange")


class Patience(NamedTuple):
    """Timeouts of a store: seconds for one response, the number of retries, and seconds for all retries."""

    answer: float = 60.0
    retries: int = 4
    all: float = 120.0


PATIENCE: Final = Patience()


class StoredObject(NamedTuple):
    """A stored object: its name, its bytes, and its last modification (epoch seconds by the store's clock)."""

    name: str
    length: int
    modified: float


class Store:
    """One object store. Thread-safe. All methods block, and raise `StoreUnavailable` or one of its subclasses."""

    def __init__(self, url: str, patience: Patience = PATIENCE) -> None:
        """Create a client, without a request. Raises `StoreUnavailable` if the environment lacks needed settings."""
        parts = urlsplit(url)
        self.url = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        self.folder = Path(unquote(parts.path)) if parts.scheme == "file" else None
        with self._translated("be opened"):
            self._store = (
                obstore.store.LocalStore(self.folder, mkdir=True)
                if self.folder is not None
                else obstore.store.from_url(
                    url,
                    client_options={
                        "timeout": timedelta(seconds=patience.answer),
                        "connect_timeout": timedelta(seconds=min(5.0, patience.answer)),
                        **({"allow_http": True} if _plain_http_on_loopback(parts.scheme) else {}),
                    },
                    retry_config={
                        "max_retries": patience.retries,
                        "retry_timeout": timedelta(seconds=patience.all),
                        "backoff": {
                            "init_backoff": timedelta(milliseconds=200),
                            "max_backoff": timedelta(seconds=10),
                            "base": 2,
                        },
                    },
                )
            )

    def create(self, name: str, content: Content) -> bool:
        """Store a new object. Return False if it exists. In a `file://` store, it then survives a power failure."""
        with self._translated("be written to"):
            try:
                self._store.put(name, content, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return False
            self._sync(name)
            return True

    def replace(self, name: str, content: Content) -> None:
        """Store an object. An existing object with this name is replaced."""
        with self._translated("be written to"):
            self._store.put(name, content, use_multipart=False)
            self._sync(name)

    def read(self, name: str) -> bytes | None:
        """Return the content of an object; None if the object does not exist."""
        with self._translated("be read"):
            try:
                return self._store.get(name).bytes().to_bytes()
            except FileNotFoundError as exc:
                if _MISSING & _codes(str(exc)):
                    raise
                return None

    def read_range(self, name: str, start: int, end: int) -> memoryview | None:
        """Return the bytes from `start` to before `end`; None if the object does not exist.

        Fewer bytes are returned if the object is shorter.
        """
        with self._translated("be read"):
            try:
                return memoryview(self._store.get_range(name, start=start, end=end))
            except FileNotFoundError as exc:
                if _MISSING & _codes(str(exc)):
                    raise
                return None
            except BaseError as exc:
                if not _NO_RANGE.search(str(exc)):
                    raise
                return memoryview(b"")

    def listed(self, folder: str) -> list[StoredObject]:
        """Return all objects below a folder, ordered by name, without objects that are still being written."""
        with self._translated("be listed"):
            return sorted(
                StoredObject(found["path"], found["size"], found["last_modified"].timestamp())
                for page in self._store.list(folder, chunk_size=1_000)
                for found in page
            )

    def folders(self) -> list[str]:
        """Return the names of the folders directly below the store's URL."""
        with self._translated("be listed"):
            return sorted(obstore.list_with_delimiter(self._store)["common_prefixes"])

    def remove(self, name: str) -> None:
        """Remove an object. It need not exist."""
        with self._translated("be written to"):
            try:
                self._store.delete(name)
            except FileNotFoundError as exc:
                if _MISSING & _codes(str(exc)):
                    raise

    def remove_drafts(self, folder: str, modified_before: float) -> None:
        """Remove partial objects of killed writers that were last written before this time (epoch seconds).

        Only `file://` stores have such files.
        """
        if self.folder is None:
            return
        with self._translated("be written to"):
            for draft in (self.folder / folder).glob("*#*"):
                if draft.stat().st_mtime < modified_before:
                    draft.unlink(missing_ok=True)

    def _sync(self, name: str) -> None:
        if self.folder is not None:
            synced(self.folder / name)
            synced((self.folder / name).parent)

    @contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        """Turn errors into `StoreUnavailable`, without a cause: the original errors contain the store's responses."""
        failed: StoreUnavailable | None = None
        try:
            yield
        except (BaseError, OSError, ValueError) as exc:
            failed = self._failure(exc, what)
        if failed is not None:
            raise failed from None

    def _failure(self, exc: Exception, what: str) -> StoreUnavailable:
        text = str(exc)
        codes = _codes(text)
        reason = f"it cannot {what} ({', '.join(sorted(codes)) or 'no answer'})"
        if isinstance(exc, PermissionDeniedError | UnauthenticatedError) or codes & _REFUSED:
            return StoreRefused(self.url, reason)
        if codes & _MISSING:
            return StoreMissing(self.url, reason)
        if codes & _FULL:
            return StoreFull(self.url, reason)
        if (number := _os_error(exc, text)) is not None and self.folder is not None:
            reason = f"it cannot {what} ({os.strerror(number)})"
            kinds: list[tuple[frozenset[int], Callable[[str, str], StoreUnavailable]]] = [
                (_FULL_DISK, StoreFull),
                (_CLOSED_DISK, StoreRefused),
            ]
            for numbers, kind in kinds:
                if number in numbers:
                    return kind(self.url, reason)
        return StoreUnavailable(self.url, reason)


def _codes(text: str) -> set[str]:
    return {*_STATUS.findall(text), *_CODE.findall(text)}


def _os_error(exc: Exception, text: str) -> int | None:
    if isinstance(exc, OSError) and exc.errno is not None:
        return exc.errno
    found = _OS_ERROR.search(text)
    return int(found[1]) if found else None


def _plain_http_on_loopback(scheme: str) -> bool:
    """True if the environment names an `http://` endpoint on this machine, which is then allowed without TLS.

    Other endpoints without TLS need `AWS_ALLOW_HTTP` in the environment.
    """
    name = {"s3": "AWS_ENDPOINT_URL", "az": "AZURE_STORAGE_ENDPOINT"}.get(scheme, "")
    endpoint = urlsplit(os.environ.get(name) or os.environ.get("AWS_ENDPOINT", "") if name else "")
    if endpoint.scheme != "http":
        return False
    try:
        return ipaddress.ip_address(endpoint.hostname or "").is_loopback
    except ValueError:
        return endpoint.hostname == "localhost"
