"""MCP: the memory as tools for assistants, at a worker's `/mcp`.

`import mcp` takes half a second: it is for `endpoint` and what that imports.
"""
