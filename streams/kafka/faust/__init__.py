"""Overrides of Faust (faust-streaming 0.15.3, aiokafka driver), a file for each concern.

`patches/library_sources` has a hash of each source that is overridden; with another Faust a worker does not start.

    fetching     The fetched records of a partition become one message, whose value is their list: one message for
                 each record costs more than all other work on it. Records from a new connection are used only after
                 a check that it leads to the same log.
    delivery     A batch is acknowledged as a whole, when its effects are done. `ledger` has the offset that may be
                 committed: Faust keeps lists of single offsets, and acknowledges what it skips in a rebalance.
    committing   The outbox is flushed before each commit, and the group confirms that we are a member.
    seeking      Faust reads between the resumption of partitions and that of the flow, and drops those records.
    threads      Fetches wait 50 ms instead of 1,500 and bring no aborted records; the thread dies with the worker.
    recovery     Tables are a `StateStore`. They are read a batch at a time, up to a mark that the new owner appends,
                 and partitions that stay are not read again. Faust's recovery waits for events that it drops, and
                 ends silently if the broker does not answer in time.
    assignor     Partitions go to the worker whose disk has their state (`placing` has the rule); Faust's assignor
                 knows only their last owners.

`hot_path` installs the overrides in an app; `status` reports the consumer's state.
"""
