"""Exports spans to a collector, by OTLP over HTTP. If the collector does not answer, the spans are dropped.

Needs the extra `otel`. For options that are not set, the SDK itself reads the OTEL_… variables: the collector's
address, headers, certificates and time-out, the service's name and other attributes, the sampler, and the sizes and
delays of batches.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased, Sampler, TraceIdRatioBased

from schemas.settings import TelemetrySettings
from schemas.settings.telemetry import pairs

log = logging.getLogger(__name__)

DEFAULT_NAME: Final = "siltstone"
#: Seconds for which a stopping worker waits for the collector to accept the last spans.
FLUSH_SECONDS: Final = 2.0
#: The loggers by which the SDK logs each failed attempt to export.
_SAYING: Final = (
    OTLPSpanExporter.__module__,
    BatchSpanProcessor.__module__,
    "opentelemetry.sdk._shared_internal",
)


class Export:
    """Sends the spans of `provider` to the collector that the settings name, until `close`."""

    def __init__(self, settings: TelemetrySettings) -> None:
        self._exporter = exporter_of(settings)
        self.provider = provider_of(settings, self._exporter)

    async def close(self) -> None:
        """Send the last spans. They are dropped if the collector does not take them within `FLUSH_SECONDS`."""
        if not self._exporter.away:
            flushed = asyncio.ensure_future(asyncio.to_thread(self.provider.force_flush))
            await asyncio.wait([flushed], timeout=FLUSH_SECONDS)
        await asyncio.to_thread(self._exporter.shutdown)
        await asyncio.to_thread(self.provider.shutdown)


class SaidOnce(SpanExporter):
    """An exporter that logs only two events: the collector stops accepting spans, and it accepts them again.

    `export` runs in the SDK's thread.
    """

    def __init__(self, exporter: SpanExporter, where: str) -> None:
        self._exporter, self._where, self._over = exporter, where, False
        for name in _SAYING:
            logging.getLogger(name).addFilter(self._is_grave)
        #: True if the last export failed.
        self.away = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self._over:
            return SpanExportResult.FAILURE
        result = self._exporter.export(spans)
        away = result is not SpanExportResult.SUCCESS
        if away != self.away and not self._over:
            self.away = away
            if away:
                log.warning(
                    "spans are dropped until the collector at %s accepts them; the worker goes on without",
                    self._where,
                )
            else:
                log.info("the collector at %s accepts spans again", self._where)
        return result

    def shutdown(self) -> None:
        """Stop exporting. An export that waits for its next attempt is given up without another attempt."""
        if not self._over:
            self._over = True
            self._exporter.shutdown()
            for name in _SAYING:
                logging.getLogger(name).removeFilter(self._is_grave)

    def _is_grave(self, record: logging.LogRecord) -> bool:
        """Suppress the SDK's own log lines, except critical ones, until `shutdown` removes this filter.

        The level of the logger is not changed for this, because the new level would stay for the whole process.
        """
        return record.levelno >= logging.CRITICAL


def exporter_of(settings: TelemetrySettings) -> SaidOnce:
    """Return the exporter of these settings. Until it is shut down, the SDK's log of each attempt is suppressed."""
    endpoint = f"{settings.endpoint}/v1/traces" if settings.endpoint else None
    exporter = OTLPSpanExporter(endpoint, headers=pairs(settings.headers.get_secret_value()) or None)
    return SaidOnce(exporter, exporter._endpoint)


def provider_of(settings: TelemetrySettings, exporter: SpanExporter) -> TracerProvider:
    """Return a provider of sampled spans with the service's attributes. Its own thread sends the spans in batches."""
    named = {SERVICE_NAME: settings.service_name} if settings.service_name else {}
    resource = Resource.create(named)
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):  # no OTEL_… variable names the service
        resource = resource.merge(Resource({SERVICE_NAME: DEFAULT_NAME}))
    provider = TracerProvider(sampler=sampler_of(settings.sample_ratio), resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def sampler_of(ratio: float | None) -> Sampler | None:
    """Return a sampler that follows the caller's decision, and records this ratio of the traces that begin here.

    Return None if `ratio` is None. Then OTEL_TRACES_SAMPLER decides; without that variable, all traces are recorded.
    """
    return None if ratio is None else ParentBased(TraceIdRatioBased(ratio))
