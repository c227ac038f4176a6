"""What Siltstone overrides of Faust (faust-streaming 0.15.3, aiokafka driver), a file for each concern.

`sources` has the hash of each source that is overridden or relied on; with another Faust a worker does not start.

    fetching     A partition's fetched records become one message, whose value is the list: a message for each record
                 costs more than all else that is done with it. Records that came over a new connection are used
                 only when it is known to be of the same log.
    delivery     A message counts when its effects are done, and in whole batches. `ledger` answers what may be
                 committed: Faust keeps lists of single offsets, and acknowledges what it skips in a rebalance.
    committing   The outbox is flushed before each commit, and the group confirms that we are a member.
    seeking      Faust reads between the resumption of partitions and that of the flow, and drops what it read.
    threads      Fetches wait 50 ms instead of 1,500 and bring no aborted records; the end of a changelog is taken
                 from a fetch, since Tansu answers with another offset; the thread dies with the worker.
    recovery     Tables are a `StateStore`. They are read a batch at a time, up to a mark that the new owner appends,
                 and partitions that stay are not read again. Faust's recovery waits for events that it drops, and
                 ends without a word where the broker does not answer in time.
    assignor     Partitions go to the worker whose disk has their state (`placing` says how); Faust's assignor knows
                 only where they were a moment ago.

`hot_path` installs all of it in an app; `status` is what the consumer can be asked.
"""
