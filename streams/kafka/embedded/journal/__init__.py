"""Journal: the embedded broker's data in one append-only file.

Tansu can keep its topics in an object store with the HTTP interface of S3. The journal's process is such a store.
When Tansu puts an object, the process appends it to the file as a frame, and answers the request only then. So a
produce request, a commit of offsets and the creation of a topic are acknowledged only when they are in the file.
After a kill, the file has all changes up to some moment. The next broker that uses the file has the same topics,
records and committed offsets.

    frames      frames of a file: length, checksum, bytes
    objects     named values in such a file, and an index of them in memory
    batches     reads Kafka's record batches, and packs them into larger ones
    reduction   selects the objects that are kept when a start rewrites the journal
    requests    answers the broker's HTTP requests
    listing     lists folders
    process     the main program of the journal's process
    child       starts this process, and watches it from the parent
"""

from typing import Final

#: The bucket that holds all objects of the store.
BUCKET: Final = "tansu"
