"""Interop peer: a stdio client on the Python MCP SDK, major version 2.

It speaks both eras: INTEROP_ERA is `legacy`, `modern` or `auto`.
"""

import os
from contextlib import asynccontextmanager

from mcp import Client, StdioServerParameters

import steps

# The SDK has no word for "modern": it takes the revision itself.
MODES = {"legacy": "legacy", "modern": "2026-07-28", "auto": "auto"}


@asynccontextmanager
async def connect(command):
    child = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with Client(child, mode=MODES[os.environ.get("INTEROP_ERA", "auto")]) as client:
        yield client, client.protocol_version


steps.main(connect)
