// A client on @modelcontextprotocol/sdk 1.x, for our server to answer.
//
//   node client.mjs talk -- COMMAND ARG…   list, call, count, cancel, close
//   node client.mjs hang -- COMMAND ARG…   start a call that never ends, and wait
//
// Each step is one line of JSON on stdout. This generation of the SDK speaks
// the legacy handshake only, so INTEROP_ERA has no effect.

import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const LONGEST_TIMER = 2 ** 31 - 1; // about 25 days: as good as for ever

const [mode, dashes, command, ...args] = process.argv.slice(2);
if (!['talk', 'hang'].includes(mode) || dashes !== '--' || !command) {
  console.error('usage: node client.mjs talk|hang -- COMMAND ARG…');
  process.exit(2);
}

const client = new Client({ name: 'interop-typescript1', version: '1.0.0' });

let step = 'era'; // the one under way, for the error line
const report = value => console.log(JSON.stringify({ step, value }));

async function call(name, args, options) {
  const result = await client.callTool({ name, arguments: args }, undefined, options);
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
  // The SDK tells the version that was agreed to the transport alone.
  let version = null;
  const transport = new StdioClientTransport({ command, args, env: process.env });
  transport.setProtocolVersion = agreed => {
    version = agreed;
  };
  await client.connect(transport);

  if (mode === 'hang') {
    step = 'hanging';
    await startHang();
    console.log(JSON.stringify({ step }));
    await sleep(LONGEST_TIMER);
  }

  report(version);

  step = 'list';
  report((await client.listTools()).tools.map(tool => tool.name));

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
  await client.close();
  console.log(JSON.stringify({ step }));
} catch (error) {
  console.log(JSON.stringify({ step, error: String(error?.message ?? error) }));
  process.exit(1);
}
