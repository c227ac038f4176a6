"""Telemetry of a worker: metrics, OpenTelemetry spans, and its activity of the last minutes.

The other parts of a worker use OpenTelemetry only through the interface `Spans`, whose implementation
`streams/worker/wiring/telemetry.py` chooses. While tracing is off, no module that makes spans is imported.
"""
