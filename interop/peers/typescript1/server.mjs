// A server on @modelcontextprotocol/sdk 1.x, for our client to talk to.
// It speaks the legacy handshake only: this generation of the SDK has no other.
//
//   node server.mjs             stdio
//   node server.mjs http PORT   Streamable HTTP, http://127.0.0.1:PORT/mcp
//
// On HTTP it prints `listening` once it does.

import { randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

const LONGEST_TIMER = 2 ** 31 - 1; // about 25 days: as good as for ever

const text = value => ({ content: [{ type: 'text', text: String(value) }] });

function log(line) {
  if (process.env.INTEROP_LOG) appendFileSync(process.env.INTEROP_LOG, line + '\n');
}

function makeServer() {
  const server = new McpServer({ name: 'interop-typescript1', version: '1.0.0' });

  server.registerTool(
    'echo',
    { description: 'Gives the text back', inputSchema: { text: z.string() } },
    args => text(args.text),
  );

  server.registerTool(
    'count',
    {
      description: 'Counts, with a pause before each number',
      inputSchema: { to: z.number().int(), delay_ms: z.number().int() },
    },
    async ({ to, delay_ms }, { signal, sendNotification, _meta }) => {
      const progressToken = _meta?.progressToken;
      for (let progress = 1; progress <= to; progress++) {
        await sleep(delay_ms, undefined, { signal });
        if (progressToken !== undefined) {
          await sendNotification({
            method: 'notifications/progress',
            params: { progressToken, progress, total: to },
          });
        }
      }
      return text(to);
    },
  );

  server.registerTool('hang', { description: 'Never answers' }, async ({ signal }) => {
    log('started');
    try {
      // A timer, and not a bare promise: node would end with nothing left to
      // wait for, and then it would not be the SDK that ends at the end of input.
      await sleep(LONGEST_TIMER, undefined, { signal });
    } catch (error) {
      log('cancelled');
      throw error;
    }
    return text('');
  });

  return server;
}

// Each session has a transport and a server of its own.
function serveHttp(port) {
  const sessions = new Map();

  async function newTransport() {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: id => void sessions.set(id, transport),
      onsessionclosed: id => void sessions.delete(id),
    });
    await makeServer().connect(transport);
    return transport;
  }

  const http = createServer(async (req, res) => {
    if (new URL(req.url, 'http://localhost').pathname !== '/mcp') return res.writeHead(404).end();
    const id = req.headers['mcp-session-id'];
    if (id && !sessions.has(id)) return res.writeHead(404).end();
    // Without a session: the transport refuses what is not an initialize.
    const transport = id ? sessions.get(id) : await newTransport();
    await transport.handleRequest(req, res);
  });
  http.listen(port, '127.0.0.1', () => console.log('listening'));
}

const [mode, port] = process.argv.slice(2);
if (mode === undefined) {
  await makeServer().connect(new StdioServerTransport());
} else if (mode === 'http' && port) {
  serveHttp(Number(port));
} else {
  console.error('usage: node server.mjs [http PORT]');
  process.exit(2);
}
