"""Builds the spans of a worker, which are recorded and exported only if telemetry is on."""

from __future__ import annotations

from schemas.errors import SettingsError
from schemas.settings import Settings
from streams.telemetry.spans import NoSpans, Spans

EXTRA = "needs the OpenTelemetry SDK: pip install 'siltstone[otel]', or set it to false"


def spans_of(settings: Settings) -> Spans:
    """Return the spans of the settings. Raises `SettingsError` if telemetry is on, but its extra is not installed."""
    if not settings.telemetry.enabled:
        return NoSpans()
    try:  # imported only here, so that a worker without telemetry does not load OpenTelemetry
        from streams.telemetry.otlp_export import Export
        from streams.telemetry.recorded import RecordedSpans
    except ModuleNotFoundError as exc:
        if not (exc.name or "").startswith("opentelemetry"):
            raise
        raise SettingsError([f"telemetry.enabled: {EXTRA}"]) from exc
    export = Export(settings.telemetry)
    return RecordedSpans(
        export.provider, settings.kafka.group_id, settings.telemetry.capture_content, end=export.close
    )
