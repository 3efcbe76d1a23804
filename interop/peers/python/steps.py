"""What the clients on both major versions of the Python SDK do, once they are connected.

    python client.py talk -- COMMAND ARG...
    python client.py hang -- COMMAND ARG...

A COMMAND that is a URL is a server on HTTP: with a path that ends in /sse it speaks the transport
of 2024-11-05, otherwise Streamable HTTP.

`connect` is theirs: a context manager that gives a session and the version it speaks.
"""

import asyncio
import json
import sys
import time
from urllib.parse import urlsplit


def say(step, **rest):
    print(json.dumps({"step": step, **rest}), flush=True)


def fail(step, error):
    while getattr(error, "exceptions", None):
        error = error.exceptions[0]
    say(step, error=str(error) or type(error).__name__)
    return 1


def transport_of(command):
    """`stdio`, `http` or `sse`."""
    url = urlsplit(command[0])
    if url.scheme not in ("http", "https"):
        return "stdio"
    return "sse" if url.path.endswith("/sse") else "http"


async def call(session, tool, arguments=None, on_progress=None):
    result = await session.call_tool(tool, arguments or {}, progress_callback=on_progress)
    text = "".join(block.text for block in result.content if block.type == "text")
    # Version 1 calls it isError, version 2 is_error.
    if getattr(result, "isError", None) or getattr(result, "is_error", None):
        raise RuntimeError(f"{tool} failed: {text}")
    return text


async def active_until(session, wanted, seconds):
    """Polls `active` until it says `wanted`; gives the last answer."""
    end = time.monotonic() + seconds
    while True:
        seen = await call(session, "active")
        if seen == wanted or time.monotonic() >= end:
            return seen
        await asyncio.sleep(0.02)


async def start_hang(session):
    hanging = asyncio.create_task(call(session, "hang"))
    try:
        seen = await active_until(session, "1", 10)
        if hanging.done():
            raise RuntimeError(f"hang ended: {hanging.exception() or hanging.result()}")
        if seen != "1":
            raise RuntimeError(f"hang did not start, active says {seen}")
    except Exception:
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)
        raise
    return hanging


async def count_progress(session):
    seen = []

    async def on_progress(progress, total, message):
        seen.append(int(progress) if progress == int(progress) else progress)

    await call(session, "count", {"to": 3, "delay_ms": 20}, on_progress)
    return seen


async def cancel_hang(session):
    hanging = await start_hang(session)
    hanging.cancel()
    await asyncio.wait([hanging])
    return await active_until(session, "0", 5)


async def talk(connect, command):
    step = "era"
    try:
        async with connect(command) as (session, version):
            say(step, value=version)
            step = "list"
            say(step, value=[tool.name for tool in (await session.list_tools()).tools])
            step = "echo"
            say(step, value=await call(session, "echo", {"text": "hello"}))
            step = "progress"
            say(step, value=await count_progress(session))
            step = "cancel"
            say(step, value=await cancel_hang(session))
            step = "done"
        say(step)
    except Exception as error:
        return fail(step, error)
    return 0


async def hang(connect, command):
    try:
        async with connect(command) as (session, _):
            hanging = await start_hang(session)
            say("hanging")
            await asyncio.wait([hanging])
            await asyncio.Event().wait()
    except Exception as error:
        return fail("hanging", error)


def main(connect):
    modes = {"talk": talk, "hang": hang}
    if len(sys.argv) < 4 or sys.argv[1] not in modes or sys.argv[2] != "--":
        sys.exit("usage: client.py talk|hang -- COMMAND ARG...")
    sys.exit(asyncio.run(modes[sys.argv[1]](connect, sys.argv[3:])))

