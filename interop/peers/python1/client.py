"""Interop peer: a client on the Python MCP SDK, major version 1.

It speaks the legacy revisions only: this version of the SDK offers no choice,
so INTEROP_ERA is ignored.
"""

import os
from contextlib import asynccontextmanager

from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

import steps


def transport(command):
    match steps.transport_of(command):
        case "http":
            return streamable_http_client(command[0])
        case "sse":
            return sse_client(command[0])
    return stdio_client(
        StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    )


@asynccontextmanager
async def connect(command):
    # On Streamable HTTP a third comes along, which tells the session's id.
    async with transport(command) as (incoming, outgoing, *_):
        async with ClientSession(incoming, outgoing) as session:
            hello = await session.initialize()
            yield session, hello.protocolVersion


steps.main(connect)
