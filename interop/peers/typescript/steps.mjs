// What the clients on both generations of the TypeScript SDK do, once they are connected.
//
//   node client.mjs talk -- COMMAND ARG…   list, call, count, cancel, close
//   node client.mjs hang -- COMMAND ARG…   start a call that never ends, and wait
//
// A COMMAND that is a URL is a server on HTTP: with a path that ends in /sse it speaks the transport
// of 2024-11-05, otherwise Streamable HTTP.
//
// Each step is one line of JSON on stdout. `open` connects to a command and gives the client, a
// function that calls a tool with options, and the version that was agreed on; `transportFor` picks
// among the transports of the SDK.

import { setTimeout as sleep } from 'node:timers/promises';

const LONGEST_TIMER = 2 ** 31 - 1; // about 25 days: as good as for ever

export function transportFor(child, { Stdio, Http, Sse }) {
  if (!/^https?:\/\//.test(child.command)) return new Stdio(child);
  const url = new URL(child.command);
  return url.pathname.endsWith('/sse') ? new Sse(url) : new Http(url);
}

export async function main(open) {
  const [mode, dashes, command, ...args] = process.argv.slice(2);
  if (!['talk', 'hang'].includes(mode) || dashes !== '--' || !command) {
    console.error('usage: node client.mjs talk|hang -- COMMAND ARG…');
    process.exit(2);
  }

  let step = 'era'; // the one under way, for the error line
  const report = value => console.log(JSON.stringify({ step, value }));

  let peer; // set once it is connected

  async function call(name, args, options) {
    const result = await peer.call({ name, arguments: args }, options);
    const text = result.content[0].text;
    if (result.isError) throw new Error(text);
    return text;
  }

  // Asks for the number of hangs until it is the wanted one, or the time is up.
  async function pollActive(wanted, millis) {
    const deadline = Date.now() + millis;
    for (;;) {
      const active = await call('active', {});
      if (active === wanted || Date.now() >= deadline) return active;
      await sleep(20);
    }
  }

  // Starts a hang; once the server says that it runs, gives what cancels it.
  async function startHang() {
    const controller = new AbortController();
    let failure;
    call('hang', {}, { signal: controller.signal, timeout: LONGEST_TIMER }).catch(error => {
      failure = error;
    });
    const active = await pollActive('1', 10_000);
    if (failure) throw failure;
    if (active !== '1') throw new Error(`active says ${active}, not 1`);
    return controller;
  }

  try {
    peer = await open({ command, args, env: process.env });

    if (mode === 'hang') {
      step = 'hanging';
      await startHang();
      console.log(JSON.stringify({ step }));
      await sleep(LONGEST_TIMER);
    }

    report(peer.version ?? null);

    step = 'list';
    report((await peer.client.listTools()).tools.map(tool => tool.name));

    step = 'echo';
    report(await call('echo', { text: 'hello' }));

    step = 'progress';
    const seen = [];
    await call('count', { to: 3, delay_ms: 20 }, { onprogress: p => seen.push(p.progress) });
    report(seen);

    step = 'cancel';
    const hang = await startHang();
    hang.abort();
    report(await pollActive('0', 5_000));

    step = 'done';
    await peer.client.close();
    console.log(JSON.stringify({ step }));
  } catch (error) {
    console.log(JSON.stringify({ step, error: String(error?.message ?? error) }));
    process.exit(1);
  }
}
