"""What a worker does, as spans of OpenTelemetry: batches of records, operations on memories, requests.

`spans` is all that the rest of the worker knows of it: an object that is made in `streams/wiring/telemetry.py` and
passed. While telemetry is off, nothing else of this room is imported.
"""
