"""Overrides of Faust (faust-streaming 0.15.3, aiokafka driver), a file for each concern.

`faust_sources` has a hash of each source that is overridden. If a source of the installed Faust differs, no
worker starts.

    fetching     The fetched records of a partition become one message, whose value is the list of records. In Faust,
                 each record is a message. That costs more than all other work on the record. Records from a new
                 connection are used only after a check that the connection leads to the same log.
    delivery     A batch is acknowledged as a whole, when its effects are done. `ledger` has the offset that may be
                 committed. Faust keeps lists of single offsets, and acknowledges messages that it skips in a
                 rebalance.
    committing   The outbox is flushed before each commit, and the group confirms that we are a member.
    seeking      The flow is stopped before a seek. Otherwise Faust would fetch records too early, and drop them.
    threads      A fetch waits for at most 50 ms (in Faust 1,500 ms), and brings no aborted records. The thread does
                 not keep the process alive.
    recovery     The rows of a table are in a `StateStore`. Changelogs are read in batches, up to a mark that the new
                 owner writes, and partitions that stay are not read again. Faust's recovery waits for events that it
                 has dropped, and ends silently if the broker does not answer in time.
    assignor     Partitions go to the worker whose disk has their state (`placing` has the rule). Faust's assignor
                 knows only the last owner of each partition.

`hot_path` installs the overrides in an app; `status` reports the consumer's state.
"""
