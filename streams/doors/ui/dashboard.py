"""The routes of the dashboard. Each screen has a module of its own."""

from __future__ import annotations

from fastapi import FastAPI

from streams.access.admission import Admission
from streams.doors.http.forwarding import Forwarding
from streams.doors.ui.actions import action_routes
from streams.doors.ui.dead_letters import dead_letter_routes
from streams.doors.ui.files import file_routes
from streams.doors.ui.lifecycle import lifecycle_routes
from streams.doors.ui.live_flow import flow_routes
from streams.doors.ui.login import login_routes
from streams.doors.ui.memories import memories_routes
from streams.doors.ui.my_memory import my_memory_routes
from streams.doors.ui.one_memory import one_memory_routes
from streams.doors.ui.overview import overview_routes
from streams.doors.ui.pages import Pages
from streams.doors.ui.search_lab import search_routes
from streams.doors.ui.sessions import session_routes
from streams.doors.ui.workers import Workers
from streams.service import MemoryService


def add_dashboard(api: FastAPI, service: MemoryService, forwarding: Forwarding, admission: Admission | None) -> None:
    """Add the routes of `/ui…`. `doors/entrance.py` adds the dashboard's middleware, `Door`."""
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
