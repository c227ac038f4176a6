"""The dashboard, put together: a module a screen."""

from __future__ import annotations

from fastapi import FastAPI

from streams.admission.admission import Admission
from streams.api.forwarding import Forwarding
from streams.service import MemoryService
from streams.ui.actions import action_routes
from streams.ui.dead_letters import dead_letter_routes
from streams.ui.files import file_routes
from streams.ui.lifecycle import lifecycle_routes
from streams.ui.live_flow import flow_routes
from streams.ui.login import login_routes
from streams.ui.memories import memories_routes
from streams.ui.my_memory import my_memory_routes
from streams.ui.one_memory import one_memory_routes
from streams.ui.overview import overview_routes
from streams.ui.pages import Pages
from streams.ui.search_lab import search_routes
from streams.ui.sessions import session_routes
from streams.ui.workers import Workers


def add_dashboard(api: FastAPI, service: MemoryService, forwarding: Forwarding, admission: Admission | None) -> None:
    """`/ui…`; its door stands before the API's guard (`api/entrance.py`)."""
    pages, workers = Pages(), Workers(forwarding, service.settings.kafka.partitions)
    for routes in (
        file_routes(),
        login_routes(admission, pages),
        overview_routes(service, workers, pages),
        flow_routes(service, workers, pages),
        session_routes(service, workers, pages),
        memories_routes(service, workers, pages),
        one_memory_routes(service, pages),
        action_routes(service),
        search_routes(service, workers, pages),
        lifecycle_routes(service, workers, pages),
        dead_letter_routes(service, pages),
        my_memory_routes(service, pages),
    ):
        api.include_router(routes)
