"""Interop peer: a stdio client on the Python MCP SDK, major version 1.

It speaks the legacy revisions only: this version of the SDK offers no choice,
so INTEROP_ERA is ignored.
"""

import os
from contextlib import asynccontextmanager

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

import steps


@asynccontextmanager
async def connect(command):
    child = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with stdio_client(child) as (incoming, outgoing):
        async with ClientSession(incoming, outgoing) as session:
            hello = await session.initialize()
            yield session, hello.protocolVersion


steps.main(connect)
