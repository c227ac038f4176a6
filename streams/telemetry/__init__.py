"""Telemetry of a worker: metrics, OpenTelemetry spans, and its activity of the last minutes.

The rest of the worker knows only `spans` of OpenTelemetry: an object that `streams/worker/wiring/telemetry.py` makes
and passes on. While tracing is off, none of the modules that make spans is imported.
"""
