"""What a worker tells of itself: metrics, spans of OpenTelemetry, and its activity of the last minutes.

`spans` is all that the rest of the worker knows of OpenTelemetry: an object that `streams/worker/wiring/telemetry.py`
makes and passes on. While tracing is off, none of the modules that make spans is imported.
"""
