"""Patches of aiokafka, for all clients of a process. `patch_aiokafka` applies them.

`aiokafka_sources` has a hash of each source that is patched or relied on. If a source of the installed aiokafka
differs, no client can be created.

    topic_creation   A client that requests the metadata of a topic does not create the topic.
    closing          A stopped client closes all of its connections, and does not cancel its caller.
    header_names     A record may have any header name, and record objects take less time to create.
"""
