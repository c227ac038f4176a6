"""What the embedded broker keeps, in one file that is only ever appended to.

Tansu can keep its topics in an object store that speaks S3's dialect of HTTP. A process beside it is that store:
each object that Tansu puts is a frame at the end of the journal before the put is answered, so a produce, a commit of
offsets and a topic's creation are acknowledged when they are in the file. The file is a prefix of what happened, also
after a kill, and the broker that is started behind it has the same topics, offsets and group positions.

    frames      records of a file: length, checksum, bytes
    objects     named values in such a file, and an index of them in memory
    batches     Kafka's record batches: read, and written closer together
    reduction   what of the objects is kept when the journal is rewritten, at a start
    requests    what the broker asks, by HTTP
    listing     what it is told of a folder
    process     the process
    child       the same, as the one sees it that has started it
"""

from typing import Final

#: The bucket of the store in which all of it is.
BUCKET: Final = "tansu"
