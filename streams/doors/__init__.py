"""Entry points: HTTP, MCP, mem0's API, the dashboard, the command line, and files of other services."""
