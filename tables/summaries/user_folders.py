"""Names of users' folders. A name is readable if that is safe, and two users never have the same name."""

from __future__ import annotations

import hashlib
import re
import unicodedata

#: User ids that are used as folder names without a change. They begin and end with a letter or digit, because other
#: programs hide, strip or misread other characters at these places.
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

    A plain id, as in the example, is its own folder name. For every other id, the name is a slug, a `+`, and a hash
    of the id. The slug only helps people to recognize the id. Plain names contain no `+`.

    So two ids never have the same name, even if they differ only in upper case or in the Unicode form of a letter.
    File systems and Windows do not change a name: its letters are only lower-case letters and Chinese characters,
    which have a single Unicode form.
    """
    if _PLAIN.fullmatch(user_id) and user_id.partition(".")[0] not in _DEVICES:
        return user_id
    folded = unicodedata.normalize("NFKD", user_id).lower()
    slug = _UNREADABLE.sub("-", folded)[:_SLUG_CHARS].strip("-")
    digest = hashlib.sha256(user_id.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    return f"{slug or 'user'}+{digest}"
