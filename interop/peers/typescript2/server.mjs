// A stdio server on @modelcontextprotocol/server 2.x, for our client to talk to.
// The first message of the client decides which era it speaks.

import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const LONGEST_TIMER = 2 ** 31 - 1; // about 25 days: as good as for ever

const text = value => ({ content: [{ type: 'text', text: String(value) }] });

function log(line) {
  if (process.env.INTEROP_LOG) appendFileSync(process.env.INTEROP_LOG, line + '\n');
}

// The SDK makes one server for each era that it tries.
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

serveStdio(makeServer);
