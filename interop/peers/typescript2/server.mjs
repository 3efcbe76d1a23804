// A server on @modelcontextprotocol/server 2.x, for our client to talk to.
//
//   node server.mjs             stdio: the first message of the client decides the era
//   node server.mjs http PORT   Streamable HTTP, http://127.0.0.1:PORT/mcp: each request does
//
// On HTTP it prints `listening` once it does.

import { randomUUID } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  McpServer,
  WebStandardStreamableHTTPServerTransport,
  createMcpHandler,
  isLegacyRequest,
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const LONGEST_TIMER = 2 ** 31 - 1; // about 25 days: as good as for ever

const text = value => ({ content: [{ type: 'text', text: String(value) }] });

function log(line) {
  if (process.env.INTEROP_LOG) appendFileSync(process.env.INTEROP_LOG, line + '\n');
}

// On stdio the SDK makes one server for each era that it tries, on modern HTTP one for each request;
// on legacy HTTP each session gets one.
function makeServer() {
  const server = new McpServer({ name: 'interop-typescript2', version: '1.0.0' });

  server.registerTool(
    'echo',
    { description: 'Gives the text back', inputSchema: z.object({ text: z.string() }) },
    args => text(args.text),
  );

  server.registerTool(
    'count',
    {
      description: 'Counts, with a pause before each number',
      inputSchema: z.object({ to: z.int(), delay_ms: z.int() }),
    },
    async ({ to, delay_ms }, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken;
      for (let progress = 1; progress <= to; progress++) {
        await sleep(delay_ms, undefined, { signal: mcpReq.signal });
        if (progressToken !== undefined) {
          await mcpReq.notify({
            method: 'notifications/progress',
            params: { progressToken, progress, total: to },
          });
        }
      }
      return text(to);
    },
  );

  server.registerTool('hang', { description: 'Never answers' }, async ({ mcpReq }) => {
    log('started');
    try {
      // A timer, and not a bare promise: node would end with nothing left to
      // wait for, and then it would not be the SDK that ends at the end of input.
      await sleep(LONGEST_TIMER, undefined, { signal: mcpReq.signal });
    } catch (error) {
      log('cancelled');
      throw error;
    }
    return text('');
  });

  return server;
}

// The SDK takes and gives web requests and responses; what turns node's into them is a package of
// its own, which we do without.
async function asWebRequest(req, res) {
  const gone = new AbortController();
  res.once('close', () => {
    if (!res.writableFinished) gone.abort();
  });
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  return new Request(`http://${req.headers.host}${req.url}`, {
    method: req.method,
    headers: req.headers,
    body: req.method === 'POST' ? Buffer.concat(chunks) : undefined,
    signal: gone.signal,
  });
}

async function sendWebResponse(response, res) {
  res.writeHead(response.status, Object.fromEntries(response.headers));
  if (!response.body) return res.end();
  res.flushHeaders();
  // A client that goes away ends this with an error, and cancels the body.
  await pipeline(Readable.fromWeb(response.body), res).catch(() => {});
}

function serveHttp(port) {
  const modern = createMcpHandler(makeServer, { legacy: 'reject' });
  const sessions = new Map();

  async function newTransport() {
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: id => void sessions.set(id, transport),
      onsessionclosed: id => void sessions.delete(id),
    });
    await makeServer().connect(transport);
    return transport;
  }

  async function answer(request) {
    if (new URL(request.url).pathname !== '/mcp') return new Response(null, { status: 404 });
    if (!(await isLegacyRequest(request))) return modern.fetch(request);
    const id = request.headers.get('mcp-session-id');
    if (id && !sessions.has(id)) return new Response(null, { status: 404 });
    // Without a session: the transport refuses what is not an initialize.
    const transport = id ? sessions.get(id) : await newTransport();
    return transport.handleRequest(request);
  }

  const http = createServer(async (req, res) => {
    try {
      await sendWebResponse(await answer(await asWebRequest(req, res)), res);
    } catch {
      res.destroy(); // the client went away before there was an answer
    }
  });
  http.listen(port, '127.0.0.1', () => console.log('listening'));
}

const [mode, port] = process.argv.slice(2);
if (mode === undefined) {
  serveStdio(makeServer);
} else if (mode === 'http' && port) {
  serveHttp(Number(port));
} else {
  console.error('usage: node server.mjs [http PORT]');
  process.exit(2);
}
