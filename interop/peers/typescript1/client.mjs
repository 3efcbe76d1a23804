// A client on @modelcontextprotocol/sdk 1.x, for our server to answer. It speaks the legacy
// handshake only, so INTEROP_ERA has no effect.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { main } from './steps.mjs';

await main(async child => {
  const client = new Client({ name: 'interop-typescript1', version: '1.0.0' });
  const transport = new StdioClientTransport(child);
  // The SDK tells the version that was agreed to the transport alone.
  let version = null;
  transport.setProtocolVersion = agreed => {
    version = agreed;
  };
  await client.connect(transport);
  const call = (request, options) => client.callTool(request, undefined, options);
  return { client, call, version };
});
