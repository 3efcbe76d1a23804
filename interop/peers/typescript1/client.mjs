// A client on @modelcontextprotocol/sdk 1.x, for our server to answer. It speaks the legacy
// handshake only, so INTEROP_ERA has no effect.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { main, transportFor } from './steps.mjs';

await main(async child => {
  const client = new Client({ name: 'interop-typescript1', version: '1.0.0' });
  const transport = transportFor(child, {
    Stdio: StdioClientTransport,
    Http: StreamableHTTPClientTransport,
    Sse: SSEClientTransport,
  });
  // The SDK tells the version that was agreed to the transport alone. On HTTP
  // the transport needs it, for its header.
  let version = null;
  const tell = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = agreed => {
    version = agreed;
    tell?.(agreed);
  };
  await client.connect(transport);
  const call = (request, options) => client.callTool(request, undefined, options);
  return { client, call, version };
});
