"""The parts of a worker, built from its settings; `streams.app` puts them together."""
