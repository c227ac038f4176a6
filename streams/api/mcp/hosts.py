"""By which hosts `/mcp` is asked for: the SDK answers 421 for others, so no page gets there by a name of its own."""

from __future__ import annotations

from schemas.settings import Settings
from schemas.settings.oidc import LOOPBACK


def names(settings: Settings) -> list[str]:
    """Without ports, as `Host` has them, IPv6 in brackets. None: by any host; then a token proves who asks."""
    http = settings.http
    if settings.access.tokens and not http.allowed_hosts:
        return []
    known = {*LOOPBACK, *http.own_names, *http.allowed_hosts}
    return sorted(f"[{name}]" if ":" in name else name for name in known)
