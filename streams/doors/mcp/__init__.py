"""MCP: the memory as tools for assistants, at a worker's `/mcp`.

`import mcp` takes half a second: only `endpoint` and its imports may import it.
"""
