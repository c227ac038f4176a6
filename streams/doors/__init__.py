"""The ways in: HTTP, MCP, the wire of mem0, the dashboard, the command line, and files of other services."""
