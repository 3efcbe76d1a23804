"""Interop peer: a client on the Python MCP SDK, major version 2.

It speaks both eras: INTEROP_ERA is `legacy`, `modern` or `auto`.
"""

import os
from contextlib import asynccontextmanager

from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client

import steps

# The SDK has no word for "modern": it takes the revision itself.
MODES = {"legacy": "legacy", "modern": "2026-07-28", "auto": "auto"}


def server(command):
    match steps.transport_of(command):
        case "http":
            return command[0]  # the SDK takes a URL for Streamable HTTP
        case "sse":
            return sse_client(command[0])
    return StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))


@asynccontextmanager
async def connect(command):
    async with Client(server(command), mode=MODES[os.environ.get("INTEROP_ERA", "auto")]) as client:
        yield client, client.protocol_version


steps.main(connect)
