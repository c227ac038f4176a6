"""Authentication and authorization of requests, by the same rules for HTTP, MCP and the dashboard."""
