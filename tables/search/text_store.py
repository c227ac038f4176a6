"""The terms and bodies of a shard's memories on the disk: a RocksDB, from which one scan reads a user's rows.

    t | user | number   session, creation time, length, speakers, and the statements and terms of the memory's text
    b | number          the user, and the memory's body
    w | number          the windows of time that the memory's text speaks of, if there are any (`spoken_times.py`)

`user` is a hash of the user's id. The store is a cache of the catalog. A write is atomic, and after a kill the store
has all writes that returned. RocksDB's checksums reveal damage; the store is then filled again from the catalog.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import shutil
import struct
import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import orjson
import rocksdict

from schemas.errors import DataDirError
from schemas.memories import Memory
from schemas.sources import speakers_in
from tables import rocksdb
from tables.paths import make_usable
from tables.rocksdb import DAMAGE, StoreDamaged, line, rewrite
from tables.search.bodies import body_of
from tables.search.terms import Terms, counted
from tables.vectors.index import Seqs

log = logging.getLogger(__name__)


#: The folder of the store in the shard's folder.
FOLDER: Final = "search"
_STAMP: Final = b"\x00stamp"
_TERMS, _BODY, _TIMES = b"t", b"b", b"w"
_TERMS_KEY, _NUMBER_KEY, _USER = struct.Struct(">cQQ"), struct.Struct(">cQ"), struct.Struct(">Q")
#: Of the value of a memory's terms, before statements and terms: session, creation time (epoch ms), length, speakers,
#: number of statements.
_HEAD: Final = struct.Struct("<QqfIQ")
_HEAD_WORDS: Final = _HEAD.size // 8


@lru_cache(maxsize=16_384)
def hash_of_name(name: str) -> int:
    """Return a hash of a name, of 64 bits. It is the same in every process."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def session_number(session_id: str | None) -> int:
    """Return a hash of a session's id, which is never 0; return 0 if there is no session."""
    return 0 if session_id is None else hash_of_name(session_id) | 1


def _speakers(memory: Memory) -> int:
    speakers = speakers_in(memory.meta)
    return zlib.crc32(orjson.dumps(speakers)) | 1 if speakers else 0


class UserRows(NamedTuple):
    """The rows of a user, oldest first: arrays of n elements, and the terms of n texts.

    `stated` are the words of the texts' statements (`Statement.word`), and `stated_rows` the row of each.

    `sessions` are `session_number`s. `speakers` are hashes of the speakers' names, 0 if there are none.
    """

    seqs: Seqs
    sessions: npt.NDArray[np.uint64]
    created_at: Seqs
    speakers: npt.NDArray[np.uint32]
    terms: Terms
    stated: npt.NDArray[np.uint64]
    stated_rows: Seqs


class Stamp(msgspec.Struct, frozen=True):
    """What the store has. It fits a catalog of this generation after this number of changes.

    All memories with numbers below `filled` have rows, and some of the others. `leaving` is not None from before a
    commit until the store has its changes. It has the rows (user, number) that the commit deletes.

    All texts of memories with numbers below `times_read` have been read for times, by the rules `times_rules`.
    """

    rules: int
    generation: int
    changes: int
    filled: int
    leaving: list[tuple[int, int]] | None = None
    times_read: int = 0
    times_rules: str = ""


@functools.cache
def _memory() -> rocksdb.Memory:
    return rocksdb.Memory()


class TextStore:
    """The store of one shard. Not thread-safe. Raises `DataDirError`, and `StoreDamaged` where rows are read.

    With `read_only`, nothing is written, and damage is raised instead of repaired.
    """

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self._folder, self._read_only = folder, read_only
        self._batch = rocksdict.WriteBatch(raw_mode=True)
        self._synced = rocksdict.WriteOptions()
        self._synced.sync = True
        self.stamp: Stamp | None = None
        try:
            self._open()
            self.stamp = self._read_stamp()
        except StoreDamaged as exc:
            if read_only:
                self.close()
                raise
            log.warning("%s: %s: its rows are filled again from the catalog", folder, exc)
            self.start_over()

    def _open(self) -> None:
        access = rocksdict.AccessType.read_only(False) if self._read_only else rocksdict.AccessType.read_write()
        if not self._read_only:
            make_usable(self._folder)
        try:
            self._db = rocksdict.Rdict(str(self._folder), _memory().options(), access_type=access)
        except Exception as exc:  # rocksdict has no narrower class of exceptions
            said = line(exc)
            if said.startswith(DAMAGE) or "No such file" in said:
                raise StoreDamaged(said) from exc
            raise DataDirError(self._folder, said) from exc

    def _read_stamp(self) -> Stamp | None:
        with self._translated():
            raw = self._db.get(_STAMP)
        try:
            return None if raw is None else _decode_stamp(raw)
        except msgspec.DecodeError as exc:
            raise StoreDamaged("its stamp is of another version") from exc

    def start_over(self) -> None:
        """Delete all rows."""
        if hasattr(self, "_db"):
            self._db.close()
        try:
            shutil.rmtree(self._folder)
        except OSError as exc:
            raise DataDirError(self._folder, exc.strerror or str(exc)) from exc
        try:
            self._open()
        except StoreDamaged as exc:
            raise DataDirError(self._folder, str(exc)) from exc
        self.stamp = None
        self._batch.clear()

    # reading

    def of_user(self, user: int) -> UserRows:
        """Return the rows of the user with this hash, oldest first."""
        keys, values = self._scanned(user)
        seqs = _seqs_in(keys)
        heads = np.frombuffer(b"".join([value[: _HEAD.size] for value in values]), "<u8").reshape(-1, _HEAD_WORDS)
        created_at = heads[:, 1].astype(np.int64)
        order = np.lexsort((seqs, created_at))
        heads = heads[order]
        stated = heads[:, 3].astype(np.int64)
        sizes = np.array([len(value) // 8 - _HEAD_WORDS for value in values], np.int64)[order] - stated
        words = np.frombuffer(b"".join([values[place][_HEAD.size :] for place in order]), "<u8")
        is_term = np.repeat(np.tile([False, True], len(order)), np.column_stack([stated, sizes]).ravel())
        lasts = np.ascontiguousarray(heads[:, 2])
        lengths = np.ascontiguousarray(lasts.view("<f4")[::2])
        speakers = np.ascontiguousarray(lasts.view("<u4")[1::2])
        return UserRows(
            seqs[order],
            heads[:, 0],
            created_at[order],
            speakers,
            Terms(words[is_term], sizes, lengths),
            words[~is_term],
            np.repeat(np.arange(len(order)), stated),
        )

    def seqs_of(self, user: int) -> Seqs:
        """Return the numbers of a user's rows, ascending."""
        keys, _ = self._scanned(user)
        return _seqs_in(keys)

    def _scanned(self, user: int) -> tuple[list[bytes], list[bytes]]:
        """Return the keys and values of the terms of a user's memories."""
        return self._in_order(_TERMS + _USER.pack(user), 8)

    def all_times(self) -> list[tuple[int, bytes]]:
        """Return all windows of time, as they were put, each with the number of its memory."""
        keys, values = self._in_order(_TIMES, 8)
        return [(int.from_bytes(key[1:], "big"), value) for key, value in zip(keys, values, strict=True)]

    def _in_order(self, prefix: bytes, more: int) -> tuple[list[bytes], list[bytes]]:
        """Return the keys that begin with `prefix` and have this number of bytes `more`, and their values."""
        options = rocksdict.ReadOptions()
        options.set_iterate_upper_bound(prefix + b"\xff" * (more + 1))
        keys: list[bytes] = []
        values: list[bytes] = []
        with self._translated():
            rows = self._db.iter(options)
            rows.seek(prefix)
            while rows.valid():
                keys.append(rows.key())
                values.append(rows.value())
                rows.next()
            rows.status()
        return keys, values

    def bodies(self, seqs: Seqs) -> list[bytes | None]:
        """Return the bodies of these memories; None for one without a body."""
        return [None if value is None else value[8:] for value in self._values(seqs)]

    def users(self, seqs: Seqs) -> list[int | None]:
        """Return the hash of the user of each of these memories; None for one without a body."""
        return [None if value is None else int.from_bytes(value[:8], "big") for value in self._values(seqs)]

    def times(self, seqs: Seqs) -> list[bytes | None]:
        """Return the windows of time of these memories, as they were put; None for one that has none."""
        return self._values(seqs, _TIMES)

    def _values(self, seqs: Seqs, kind: bytes = _BODY) -> list[bytes | None]:
        with self._translated():
            found: list[bytes | None] = self._db.get([_key(kind, seq) for seq in seqs.tolist()])  # type: ignore[assignment]
        return found

    # writing

    def put(self, memory: Memory) -> None:
        """Write a memory's terms and body, with the next `write`."""
        session, terms = session_number(memory.session_id), counted(memory.text)
        head = _HEAD.pack(session, memory.created_at, terms.length, _speakers(memory), len(terms.stated))
        words = np.array([*terms.stated, *terms.words], "<u8").tobytes()
        self._batch.put(_terms_key(hash_of_name(memory.user_id), memory.seq), head + words)
        self.put_body(memory)

    def put_body(self, memory: Memory) -> None:
        """Write a memory's body, with the next `write`."""
        self._batch.put(_key(_BODY, memory.seq), _USER.pack(hash_of_name(memory.user_id)) + body_of(memory))

    def put_times(self, seq: int, windows: bytes) -> None:
        """Write the windows of time of a memory, with the next `write`."""
        self._batch.put(_key(_TIMES, seq), windows)

    def delete_times(self, seq: int) -> None:
        """Delete the windows of time of a memory, with the next `write`."""
        self._batch.delete(_key(_TIMES, seq))

    def clear_times(self) -> None:
        """Delete the windows of time of all memories, and their bytes, at once."""
        keys, _ = self._in_order(_TIMES, 8)
        if keys and self.stamp is not None:
            for key in keys:
                self._batch.delete(key)
            self.write(self.stamp)
            self.erase()

    def delete_bodies(self, seqs: Seqs) -> None:
        """Delete the bodies of these memories, with the next `write`."""
        for seq in seqs.tolist():
            self._batch.delete(_key(_BODY, seq))

    def delete(self, leaving: Sequence[tuple[int, int]]) -> None:
        """Delete these rows (user, number) with all that is of these memories, with the next `write`."""
        for user, seq in leaving:
            self._batch.delete(_terms_key(user, seq))
            self._batch.delete(_key(_BODY, seq))
            self._batch.delete(_key(_TIMES, seq))

    def write(self, stamp: Stamp, *, synced: bool = False) -> None:
        """Write what was put and deleted, and the stamp. If `synced`, they survive a power cut, too."""
        batch, self._batch = self._batch, rocksdict.WriteBatch(raw_mode=True)
        batch.put(_STAMP, msgspec.msgpack.encode(stamp))
        with self._translated():
            if synced:
                self._db.write(batch, self._synced)
            else:
                self._db.write(batch)
        self.stamp = stamp

    def discard(self) -> None:
        """Forget what was put and deleted since the last `write`."""
        self._batch.clear()

    def erase(self) -> None:
        """Rewrite the files without any byte of deleted rows."""
        with self._translated():
            self._db.flush()
            rewrite(self._db)

    def close(self) -> None:
        if hasattr(self, "_db"):
            self._db.close()

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (DataDirError, GeneratorExit):
            raise
        except Exception as exc:
            said = line(exc)
            if said.startswith(DAMAGE):
                raise StoreDamaged(said) from exc
            raise DataDirError(self._folder, said) from exc


def _seqs_in(keys: Sequence[bytes]) -> Seqs:
    return np.frombuffer(b"".join([key[9:] for key in keys]), ">i8").astype(np.int64)


_decode_stamp: Final = msgspec.msgpack.Decoder(Stamp).decode


def _terms_key(user: int, seq: int) -> bytes:
    return _TERMS_KEY.pack(_TERMS, user, seq)


def _key(kind: bytes, seq: int) -> bytes:
    return _NUMBER_KEY.pack(kind, seq)
