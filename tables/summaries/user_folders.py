"""Names of users' folders: readable if that is safe, and never the same for two users."""

from __future__ import annotations

import hashlib
import re
import unicodedata

#: Ids kept as they are. They begin and end with a letter or digit: other programs hide, strip or misread the rest.
_PLAIN = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")
#: Names that are devices in Windows, with any extension.
_DEVICES = frozenset({"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))})
_UNREADABLE = re.compile(r"[^a-z0-9\u4e00-\u9fff]+")
_SLUG_CHARS = 24
_HASH_CHARS = 32


def folder_of(user_id: str) -> str:
    """Return the folder name of a user id, at most 255 bytes long.

    >>> folder_of("ann.lee-2")
    'ann.lee-2'

    For every other id it is a slug, which only helps to read it, and a hash after a `+`, which no plain name has. So
    upper case, Unicode's forms of the same letter, and names that a file system or Windows changes cause no
    collisions. Names contain only lower case and Chinese characters, which have one form.
    """
    if _PLAIN.fullmatch(user_id) and user_id.partition(".")[0] not in _DEVICES:
        return user_id
    folded = unicodedata.normalize("NFKD", user_id).lower()
    slug = _UNREADABLE.sub("-", folded)[:_SLUG_CHARS].strip("-")
    digest = hashlib.sha256(user_id.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    return f"{slug or 'user'}+{digest}"
