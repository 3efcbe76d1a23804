// A stdio server on @modelcontextprotocol/sdk 1.x, for our client to talk to.
// It speaks the legacy handshake only: this generation of the SDK has no other.

import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { z } from 'zod';

const LONGEST_TIMER = 2 ** 31 - 1; // about 25 days: as good as for ever

const text = value => ({ content: [{ type: 'text', text: String(value) }] });

function log(line) {
  if (process.env.INTEROP_LOG) appendFileSync(process.env.INTEROP_LOG, line + '\n');
}

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

await server.connect(new StdioServerTransport());
