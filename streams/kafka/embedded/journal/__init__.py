"""Journal: the embedded broker's data in one append-only file.

Tansu can keep its topics in an object store that speaks S3's dialect of HTTP. The journal's process is that store:
it appends each object that Tansu puts as a frame before it answers the put, so a produce, a commit of offsets and a
topic's creation are acknowledged when they are in the file. Even after a kill, the file is a prefix of what happened,
and the next broker that is started on it has the same topics, offsets and group positions.

    frames      frames of a file: length, checksum, bytes
    objects     named values in such a file, and an index of them in memory
    batches     Kafka's record batches: read, and packed into larger ones
    reduction   the objects that are kept when the journal is rewritten, at a start
    requests    the broker's HTTP requests
    listing     the listings of folders
    process     the process
    child       the same process, as its parent sees it
"""

from typing import Final

#: The bucket that holds all objects of the store.
BUCKET: Final = "tansu"
