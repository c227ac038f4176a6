"""Spans reach a collector by the real exporter, and a collector that is away costs nothing but the spans."""

from __future__ import annotations

import asyncio
import logging
import sys

import pytest
from opentelemetry.sdk.trace.sampling import ParentBased

from schemas.errors import SettingsError
from schemas.settings import Settings, TelemetrySettings
from streams.doors.cli import running
from streams.telemetry.otlp_export import Export, SaidOnce, exporter_of, provider_of, sampler_of
from streams.telemetry.spans import NoSpans
from streams.worker.wiring.telemetry import spans_of
from tests.support.api import api
from tests.support.collector import collecting
from tests.support.ports import free_port
from tests.support.waiting import until


def settings_of(**telemetry: object) -> TelemetrySettings:
    return TelemetrySettings.model_validate({"enabled": True, **telemetry})


async def test_spans_go_to_the_collector_of_the_settings_when_the_worker_ends() -> None:
    with collecting() as collector:
        export = Export(
            settings_of(endpoint=collector.url + "/", headers="X-Key=s3cret, other=2", service_name="chat")
        )
        with export.provider.get_tracer("t").start_as_current_span("one"):
            pass
        await export.close()
    assert (collector.path, collector.spans) == ("/v1/traces", ["one"])
    assert (collector.headers["x-key"], collector.headers["other"]) == ("s3cret", "2")
    assert collector.headers["content-type"] == "application/x-protobuf"
    assert collector.resource["service.name"] == "chat"


async def test_what_is_not_set_is_as_the_variables_say(monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=s3cret")
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=staging,service.name=ours")
        export = Export(settings_of())
        export.provider.get_tracer("t").start_span("one").end()
        await export.close()
    assert (collector.spans, collector.headers["x-key"]) == (["one"], "s3cret")
    assert collector.resource["deployment.environment"] == "staging"
    assert collector.resource["service.name"] == "ours"


def test_a_service_without_a_name_is_siltstone() -> None:
    export = Export(settings_of())
    assert export.provider.resource.attributes["service.name"] == "siltstone"
    asyncio.run(export.close())


def test_a_callers_trace_is_recorded_as_the_caller_decided() -> None:
    sampler = sampler_of(0.25)
    assert isinstance(sampler, ParentBased)
    assert "TraceIdRatioBased{0.25}" in str(sampler._root.get_description())
    assert sampler_of(None) is None


@pytest.mark.slow
async def test_a_collector_that_is_away_is_said_once_and_once_that_it_is_back(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each attempt would be a line of the SDK's; and no end waits for one that does not come back."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    caplog.set_level(logging.INFO)
    port = free_port()
    exporter = exporter_of(settings_of(endpoint=f"http://127.0.0.1:{port}", headers="x-key=s3cret"))
    provider = provider_of(settings_of(), exporter)
    tracer = provider.get_tracer("t")

    async def spans(count: int) -> None:
        for _ in range(count):
            tracer.start_span("one").end()
            await asyncio.to_thread(provider.force_flush)

    await spans(3)
    assert exporter.away
    with collecting(port) as collector:
        await spans(2)
        assert collector.spans == ["one", "one"]
    await spans(1)
    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    gone = f"spans are dropped until the collector at http://127.0.0.1:{port}/v1/traces accepts them; "
    gone += "the worker goes on without"
    back = f"the collector at http://127.0.0.1:{port}/v1/traces accepts spans again"
    assert said == [("WARNING", gone), ("INFO", back), ("WARNING", gone)]
    assert "s3cret" not in caplog.text
    tracer.start_span("one").end()
    await asyncio.to_thread(exporter.shutdown)
    await asyncio.to_thread(provider.shutdown)


@pytest.mark.slow
async def test_a_workers_spans_are_with_the_collector_when_it_has_ended(settings: Settings) -> None:
    with collecting() as collector:
        telemetry = settings_of(endpoint=collector.url)
        async with running.started(settings.model_copy(update={"telemetry": telemetry})) as worker:
            await running.until_ready(worker)
            async with api(worker) as client:
                text = {"user_id": "ann", "text": "I live in Oslo"}
                assert (await client.post("/v1/memories?wait=applied", json=text)).json()["applied"] is True
        brought = f"process {worker.topics.long_term}"
    assert {"POST /v1/memories", "create_memory", brought} <= set(collector.spans)
    assert collector.resource["service.name"] == "siltstone"


@pytest.mark.slow
async def test_a_worker_works_and_ends_while_its_collector_is_away(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    telemetry = settings_of(endpoint=f"http://127.0.0.1:{free_port()}")
    async with running.started(settings.model_copy(update={"telemetry": telemetry})) as worker:
        await running.until_ready(worker)
        async with api(worker) as client:
            for _ in range(3):
                text = {"user_id": "ann", "text": "I live in Oslo"}
                assert (await client.post("/v1/memories", json=text)).status_code == 202
        await until(lambda: "spans are dropped" in caplog.text)
    assert caplog.text.count("spans are dropped") == 1


@pytest.mark.parametrize("part", ["opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http.trace_exporter"])
def test_telemetry_without_its_extra_is_one_line_that_says_what_to_install(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [one for one in sys.modules if one.startswith("streams.telemetry.")]:
        if name != "streams.telemetry.spans":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, part, None)
    with pytest.raises(SettingsError) as refused:
        spans_of(Settings.load(telemetry={"enabled": True}))
    assert refused.value.problems == [
        "telemetry.enabled: needs the OpenTelemetry SDK: pip install 'siltstone[otel]', or set it to false"
    ]


def test_while_it_is_off_nothing_is_made() -> None:
    assert isinstance(spans_of(Settings.load()), NoSpans)


@pytest.mark.parametrize("headers", ["secret", "=secret", "name=sécret", "a=1,secret"])
def test_headers_that_cannot_be_read_are_refused_without_their_text(headers: str) -> None:
    with pytest.raises(SettingsError, match=r"telemetry\.headers: .*name=value") as refused:
        Settings.load(telemetry={"headers": headers})
    assert "cret" not in str(refused.value)


def test_headers_are_hidden() -> None:
    assert "s3cret" not in repr(settings_of(headers="x-key=s3cret"))


def test_a_shutdown_twice_is_one() -> None:
    exporter = exporter_of(settings_of(endpoint=f"http://127.0.0.1:{free_port()}"))
    assert isinstance(exporter, SaidOnce)
    exporter.shutdown()
    exporter.shutdown()
