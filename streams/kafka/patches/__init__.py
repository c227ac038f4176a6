"""Patches of aiokafka, for all clients of a process. `patch_aiokafka` applies them.

`library_sources` has a hash of each source that is patched or relied on; with another aiokafka nothing connects.

    topic_creation   A client that asks about a topic does not create it.
    closing          A stopped client closes all of its connections, and does not cancel its caller.
    header_names     A record may have any header name, and record objects are light.
"""
