"""A server of the official Python SDK that says what is to be done with an agent: the word stands in a file.

Usage: server.py WORD_FILE stdio | server.py WORD_FILE PORT
"""
import pathlib
import sys

word, how = pathlib.Path(sys.argv[1]), sys.argv[2]
try:
    from mcp.server.fastmcp import FastMCP as Server
except ImportError:
    from mcp.server.mcpserver import MCPServer as Server

server = Server("coordinator")


@server.tool()
def get_agent_action(agent_id: str, project_id: str) -> dict[str, str]:
    """What is to be done with an agent."""
    return {"action": word.read_text().strip(), "agent": f"{agent_id}/{project_id}"}


if how == "stdio":
    server.run(transport="stdio")
else:
    try:
        server.settings.port = int(how)
        server.run(transport="streamable-http")
    except (AttributeError, ValueError):
        server.run(transport="streamable-http", port=int(how))
