// A client on @modelcontextprotocol/client 2.x, for our server to answer. INTEROP_ERA is legacy,
// modern or auto.

import {
  Client,
  SSEClientTransport,
  StreamableHTTPClientTransport,
} from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { main, transportFor } from './steps.mjs';

await main(async child => {
  const era = process.env.INTEROP_ERA || 'auto';
  const client = new Client(
    { name: 'interop-typescript2', version: '1.0.0' },
    { versionNegotiation: { mode: era === 'modern' ? { pin: '2026-07-28' } : era } },
  );
  const transport = transportFor(child, {
    Stdio: StdioClientTransport,
    Http: StreamableHTTPClientTransport,
    Sse: SSEClientTransport,
  });
  await client.connect(transport);
  const call = (request, options) => client.callTool(request, options);
  return { client, call, version: client.getNegotiatedProtocolVersion() };
});
