"""The MCP server of a worker, at `/mcp`: the memory as tools for assistants, and profiles as resources.

`import mcp` takes half a second. Therefore only `endpoint` and the modules that it imports may import `mcp`.
"""
