"""The parts of a worker, built from its settings and put together by `streams.app`; replays use the same parts."""
