"""Interop peer: a server on the Python MCP SDK.

Major version 1 speaks the legacy revisions, version 2 both eras: it takes the
one that the client opens with.

    python server.py              stdio
    python server.py http PORT    Streamable HTTP, http://127.0.0.1:PORT/mcp
    python server.py sse PORT     the transport of 2024-11-05, http://127.0.0.1:PORT/sse

On HTTP it prints `listening` once it does.

`hang` writes what becomes of it into the file that INTEROP_LOG names.
"""

import asyncio
import os
import socket
import sys

import uvicorn

try:
    from mcp.server.mcpserver import Context, MCPServer
except ImportError:  # what version 1 calls it
    from mcp.server.fastmcp import Context, FastMCP as MCPServer

server = MCPServer("interop-python", log_level="WARNING")


def note(line: str) -> None:
    path = os.environ.get("INTEROP_LOG")
    if path:
        with open(path, "a", encoding="utf-8") as log:
            log.write(line + "\n")


@server.tool()
async def echo(text: str) -> str:
    """Gives the text back."""
    return text


@server.tool()
async def count(to: int, delay_ms: int, ctx: Context) -> str:
    """Counts up to a number and reports each step as progress."""
    for step in range(1, to + 1):
        await asyncio.sleep(delay_ms / 1000)
        await ctx.report_progress(step, to)
    return str(to)


@server.tool()
async def hang() -> str:
    """Waits until it is cancelled."""
    note("started")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        note("cancelled")
        raise
    return "woken"


def serve(app, port: int) -> None:
    # The socket is made here and not by uvicorn, to know when it listens.
    listener = socket.create_server(("127.0.0.1", port))
    print("listening", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            server.run("stdio")
        case ["http", port]:
            serve(server.streamable_http_app(), int(port))
        case ["sse", port]:
            serve(server.sse_app(), int(port))
        case _:
            sys.exit("usage: server.py [http PORT | sse PORT]")
