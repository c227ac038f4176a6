"""The MCP server of a worker, at `/mcp`. It offers the memory to assistants as tools.

`import mcp` takes half a second. Therefore only `endpoint` and the modules that it imports may import `mcp`.
"""
