"""The spans of a worker: recorded and exported, or none."""

from __future__ import annotations

from schemas.errors import SettingsError
from schemas.settings import Settings
from streams.telemetry.spans import NoSpans, Spans

EXTRA = "needs the OpenTelemetry SDK: pip install 'siltstone[otel]', or set it to false"


def spans_of(settings: Settings) -> Spans:
    """Raises `SettingsError` where telemetry is on, and its extra is not installed."""
    if not settings.telemetry.enabled:
        return NoSpans()
    try:  # nothing of it is loaded for a worker without
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
