"""Interop peer: a stdio client on the Python MCP SDK, major version 2.

It speaks both eras: INTEROP_ERA is `legacy`, `modern` or `auto`.

    python client.py talk -- COMMAND ARG...
    python client.py hang -- COMMAND ARG...
"""

import asyncio
import json
import os
import sys
import time

from mcp import Client, StdioServerParameters

# The SDK has no word for "modern": it takes the revision itself.
MODES = {"legacy": "legacy", "modern": "2026-07-28", "auto": "auto"}


def say(step, **rest):
    print(json.dumps({"step": step, **rest}), flush=True)


def fail(step, error):
    while getattr(error, "exceptions", None):
        error = error.exceptions[0]
    say(step, error=str(error) or type(error).__name__)
    return 1


def connect(command):
    child = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    return Client(child, mode=MODES[os.environ.get("INTEROP_ERA", "auto")])


async def call(client, tool, arguments=None, on_progress=None):
    result = await client.call_tool(tool, arguments or {}, progress_callback=on_progress)
    text = "".join(block.text for block in result.content if block.type == "text")
    if result.is_error:
        raise RuntimeError(f"{tool} failed: {text}")
    return text


async def active_until(client, wanted, seconds):
    """Polls `active` until it says `wanted`; gives the last answer."""
    end = time.monotonic() + seconds
    while True:
        seen = await call(client, "active")
        if seen == wanted or time.monotonic() >= end:
            return seen
        await asyncio.sleep(0.02)


async def start_hang(client):
    hanging = asyncio.create_task(call(client, "hang"))
    try:
        seen = await active_until(client, "1", 10)
        if hanging.done():
            raise RuntimeError(f"hang ended: {hanging.exception() or hanging.result()}")
        if seen != "1":
            raise RuntimeError(f"hang did not start, active says {seen}")
    except Exception:
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)
        raise
    return hanging


async def count_progress(client):
    seen = []

    async def on_progress(progress, total, message):
        seen.append(int(progress) if progress == int(progress) else progress)

    await call(client, "count", {"to": 3, "delay_ms": 20}, on_progress)
    return seen


async def cancel_hang(client):
    hanging = await start_hang(client)
    hanging.cancel()
    await asyncio.wait([hanging])
    return await active_until(client, "0", 5)


async def talk(command):
    step = "era"
    try:
        async with connect(command) as client:
            say(step, value=client.protocol_version)
            step = "list"
            say(step, value=[tool.name for tool in (await client.list_tools()).tools])
            step = "echo"
            say(step, value=await call(client, "echo", {"text": "hello"}))
            step = "progress"
            say(step, value=await count_progress(client))
            step = "cancel"
            say(step, value=await cancel_hang(client))
            step = "done"
        say(step)
    except Exception as error:
        return fail(step, error)
    return 0


async def hang(command):
    try:
        async with connect(command) as client:
            hanging = await start_hang(client)
            say("hanging")
            await asyncio.wait([hanging])
            await asyncio.Event().wait()
    except Exception as error:
        return fail("hanging", error)


def main():
    modes = {"talk": talk, "hang": hang}
    if len(sys.argv) < 4 or sys.argv[1] not in modes or sys.argv[2] != "--":
        sys.exit("usage: client.py talk|hang -- COMMAND ARG...")
    sys.exit(asyncio.run(modes[sys.argv[1]](sys.argv[3:])))


if __name__ == "__main__":
    main()
