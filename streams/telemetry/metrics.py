"""All metrics of a worker, with unit and meaning."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

from streams.telemetry.recovery_progress import Behind

#: The upper bounds of the buckets in the histogram of promotion ages, in seconds. The buckets up to one second are
#: narrow, because load tests judge the worker by ages in this range.
PROMOTION_AGES: Final = (
    *(0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.125, 0.15, 0.175, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8),
    *(0.9, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0),
)


class Metrics:
    """The worker's Prometheus metrics, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)  # memory, processor time and open files, if there is /proc
        self.messages = Counter("siltstone_messages", "Chat messages taken into a window", registry=registry)
        self.duplicates = Counter(
            "siltstone_duplicate_messages", "Messages ignored: their id is in the window", registry=registry
        )
        self.wordless = Counter(
            "siltstone_wordless_messages",
            "Messages skipped because they have no text (only tool calls or pictures)",
            registry=registry,
        )
        self.late = Counter(
            "siltstone_late_messages",
            "Messages older than a decided exchange: each became an exchange of its own",
            registry=registry,
        )
        self.clock_corrected = Counter(
            "siltstone_clock_corrected_messages",
            "Messages whose time was corrected: ahead of their record, or behind the previous message",
            ["why"],
            registry=registry,
        )
        self.clock_skew = Gauge(
            "siltstone_clock_skew_seconds",
            "Time of a producer's newest message minus the time of its record, by the header producer",
            ["producer"],
            registry=registry,
        )
        self.rerouted = Counter(
            "siltstone_rerouted_records",
            "Records produced again with the right key, by topic",
            ["topic"],
            registry=registry,
        )
        self.lost_exchanges = Counter(
            "siltstone_lost_exchanges",
            "Window exchanges that were missing from their changelog at a recovery",
            registry=registry,
        )
        self.lost_records = Counter(
            "siltstone_lost_records",
            "Offsets of records that were deleted or skipped before they were read, by topic",
            ["topic"],
            registry=registry,
        )
        self.emptied_changelogs = Counter(
            "siltstone_emptied_changelogs",
            "Changelog partitions that had no rows at a recovery, although offsets were committed",
            ["topic"],
            registry=registry,
        )
        self.timer_failures = Counter(
            "siltstone_timer_failures",
            "Failures of timers that do not stop the worker, by timer",
            ["timer"],
            registry=registry,
        )
        self.exchanges = Counter("siltstone_exchanges", "Exchanges that closed", registry=registry)
        self.decisions = Counter(
            "siltstone_decisions",
            "Exchanges decided on, by outcome (promoted, dropped) and reason",
            ["outcome", "reason"],
            registry=registry,
        )
        self.ratings = Counter(
            "siltstone_ratings",
            "Exchanges to be rated by a model, by outcome (answered, failed, kept: it had answered before)",
            ["outcome"],
            registry=registry,
        )
        self.ratings_waiting = Gauge(
            "siltstone_ratings_waiting",
            "Exchanges whose rating was requested and is not known yet",
            registry=registry,
        )
        self.refinements = Counter(
            "siltstone_refinements",
            "Questions to a model about new memories, by kind (supersede, summary) and outcome (asked, replaced, "
            "kept, failed, dropped)",
            ["kind", "outcome"],
            registry=registry,
        )
        self.refinements_waiting = Gauge(
            "siltstone_refinements_waiting",
            "New memories that wait for a question to a model",
            registry=registry,
        )
        self.profile_sections = Counter(
            "siltstone_profile_sections",
            "Sections of profiles that a model was asked to reword, by outcome (reworded, refused: its words fail "
            "the check, failed: no answer)",
            ["outcome"],
            registry=registry,
        )
        self.summaries = Counter(
            "siltstone_summaries",
            "Requests for a summary, by outcome (written, written_elsewhere: in the fallback directory, coalesced: "
            "answered with another request for the same day, empty, repeated, forgotten, failed: tried again with "
            "the user's next one)",
            ["outcome"],
            registry=registry,
        )
        self.summaries_left_out = Counter(
            "siltstone_summary_messages_left_out",
            "Messages that did not fit into the summary of their day, which reads the newest ones",
            registry=registry,
        )
        self.summary_texts_cut = Counter(
            "siltstone_summary_texts_cut",
            "Texts that were cut from summaries by a model, by reason (source: it cites no message; number, time, "
            "name, words: no message holds these; repeated)",
            ["reason"],
            registry=registry,
        )
        self.summaries_waiting = Gauge(
            "siltstone_summary_days_waiting",
            "Days of users whose summary was requested and has not begun",
            registry=registry,
        )
        self.forgotten_folders = Gauge(
            "siltstone_forgotten_folders",
            "Folders of forgotten users that could not be removed yet",
            registry=registry,
        )
        self.dead_letters = Counter(
            "siltstone_dead_letters",
            "Records that could not be used, by topic and kind",
            ["topic", "kind"],
            registry=registry,
        )
        self.refused = Counter(
            "siltstone_refused_records",
            "Records that the broker refused for good, by topic and error: each is a dead letter, cut if too large",
            ["topic", "error"],
            registry=registry,
        )
        self.memories = Counter(
            "siltstone_memories",
            "Effects of long-term events, by effect (new, merged, touched, edited, superseded, reinstated, "
            "summarized, archived, restored, removed, expired, repeated, forgotten, unknown, spared, refused)",
            ["effect"],
            registry=registry,
        )
        self.short_term_hits = Counter(
            "siltstone_short_term_hits",
            "Hits of searches and contexts that were exchanges of short-term windows, not memories",
            registry=registry,
        )
        self.outdated_hits = Counter(
            "siltstone_outdated_hits",
            "Hits that were ranked behind a newer statement about the same, and dated until then",
            registry=registry,
        )
        self.promotion_age = Histogram(
            "siltstone_promotion_age_seconds",
            "Seconds from the production of the record that decides on a promotion until its memory is stored",
            buckets=PROMOTION_AGES,
            registry=registry,
        )
        self.notes = Counter(
            "siltstone_notes",
            "Effects on explicit short-term memories, by effect (kept, repeated, promoted, expired, crowded_out, "
            "removed, forgotten)",
            ["effect"],
            registry=registry,
        )
        self.states = Gauge(
            "siltstone_memory_states",
            "Memories of this worker's shards, by state",
            ["state"],
            registry=registry,
        )
        self.scores = Gauge(
            "siltstone_memory_scores",
            "Memories of this worker's shards, by score in steps of ten points (the lower end)",
            ["from_score"],
            registry=registry,
        )
        self.outliers = Gauge(
            "siltstone_memory_score_outliers",
            "Memories of this worker's shards whose score is an outlier, by side (low, high)",
            ["side"],
            registry=registry,
        )
        self.transitions = Counter(
            "siltstone_transitions",
            "Changes of state that were published to the transitions topic, by pair",
            ["from", "to"],
            registry=registry,
        )
        self.cleanup = Counter(
            "siltstone_cleanup",
            "Memories that cleanup requested to be archived or removed, by outcome",
            ["outcome"],
            registry=registry,
        )
        self.snapshots = Counter(
            "siltstone_snapshots",
            "Runs of the analysts' copy, by outcome (made, unchanged, postponed, spared, failed)",
            ["outcome"],
            registry=registry,
        )
        self.checkpoints = Counter(
            "siltstone_checkpoints",
            "Checkpoints that began, by outcome (taken, given_up, fenced, store_away, store_full, "
            "store_refused, store_missing, mismatch, changed, failed; not_expired: older ones stay for now)",
            ["outcome"],
            registry=registry,
        )
        self.checkpoint_bytes = Counter(
            "siltstone_checkpoint_uploaded_bytes", "Uploaded bytes of checkpoints", registry=registry
        )
        self.checkpoint_at = Gauge(
            "siltstone_checkpoint_timestamp_seconds",
            "Time of the newest checkpoint of each partition of this worker, in seconds since 1970",
            ["partition"],
            registry=registry,
        )
        self.restores = Counter(
            "siltstone_restores",
            "Assigned partitions, by the source of their state (disk, checkpoint, log)",
            ["source"],
            registry=registry,
        )
        self.warm_copies = Gauge(
            "siltstone_warm_copies", "Warm copies of other workers' partitions on this disk", registry=registry
        )
        self.warm_takeovers = Counter(
            "siltstone_warm_takeovers", "Assigned partitions that had a warm copy on this disk", registry=registry
        )
        self.sessions = Gauge("siltstone_sessions", "Sessions in the short-term tables", registry=registry)
        self.windows_resident = Gauge(
            "siltstone_windows_resident_bytes",
            "Upper estimate of the memory of decoded window rows, in bytes",
            registry=registry,
        )
        self.windows_read_back = Gauge(
            "siltstone_windows_rows_read_back",
            "Window rows that were read from disk because they were not in memory, since the start",
            registry=registry,
        )
        self.lag = Gauge("siltstone_lag_records", "Records not yet committed, by topic", ["topic"], registry=registry)
        self.uncommitted_seconds = Gauge(
            "siltstone_uncommitted_seconds",
            "Seconds without a possible commit of processed records; 0 while commits succeed",
            registry=registry,
        )
        of_what = ["partition", "part", "doing"]
        self.behind_done = Gauge(
            "siltstone_coming_back_done",
            "Recovery of a partition that is done: rows (opening), bytes (restoring) or records (catching up), by "
            "partition, part (memories, windows) and phase (doing)",
            of_what,
            registry=registry,
        )
        self.behind_of_all = Gauge(
            "siltstone_coming_back_of_all",
            "Total of siltstone_coming_back_done, if it is known",
            of_what,
            registry=registry,
        )
        self.behind_seconds = Gauge(
            "siltstone_coming_back_eta_seconds",
            "Seconds until the recovery is done, at the recent rate, if there is one",
            of_what,
            registry=registry,
        )
        self.search_seconds = Histogram(
            "siltstone_search_seconds", "Seconds for a search, embedding and reranking included", registry=registry
        )
        self.rerank = Counter(
            "siltstone_rerank",
            "Searches whose best hits a model was to put in order, by outcome (done, late, failed: the order stays)",
            ["outcome"],
            registry=registry,
        )

    def behind(self, behind: Iterable[Behind]) -> None:
        """Set the gauges for the parts that are still being recovered, and remove the samples of recovered parts."""
        for gauge in (self.behind_done, self.behind_of_all, self.behind_seconds):
            gauge.clear()
        for one in behind:
            labels = str(one.partition), one.part, one.doing
            self.behind_done.labels(*labels).set(one.done)
            if one.of_all is not None:
                self.behind_of_all.labels(*labels).set(one.of_all)
            if one.eta_seconds is not None:
                self.behind_seconds.labels(*labels).set(one.eta_seconds)

    def promoted(self) -> int:
        """Return the number of exchanges that were promoted."""
        return sum(n for (outcome, _), n in labelled(self.decisions).items() if outcome == "promoted")

    def taken_in(self) -> int:
        """Return the number of applied events that bring a memory, even if it was merged, repeated or forgotten."""
        effects = labelled(self.memories)
        return sum(effects.get((effect,), 0) for effect in ("new", "merged", "repeated", "forgotten"))


def value_of(gauge: Gauge) -> float:
    """Return the value of a gauge without labels."""
    return next(sample.value for family in gauge.collect() for sample in family.samples)


def labelled(counter: Counter) -> dict[tuple[str, ...], int]:
    """Return a counter's values as {label values: value}. The label values are in the order of the labels."""
    names = counter._labelnames
    return {
        tuple(sample.labels[name] for name in names): int(sample.value)
        for family in counter.collect()
        for sample in family.samples
        if sample.name.endswith("_total")
    }
