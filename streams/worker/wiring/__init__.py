"""The parts of a worker, built from its settings and put together by `streams.app`; a replay's are the same."""
