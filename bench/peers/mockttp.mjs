/**
 * mockttp as an intercepting proxy that forwards everything. With its defaults, `recordTraffic` keeps each request of
 * a rule in memory, and nothing goes to disk. The origin's CA comes from Node's environment: as an option of the
 * rule it would make each request several times slower.
 *
 * Usage: NODE_EXTRA_CA_CERTS=<origin CA file> node mockttp.mjs <port> <directory> [change]; prints {"port", "ca"} when
 * it listens. The change is JSON: {"headers": {name: value}} for requests and responses, {"replace": [from, to]} for
 * bodies of responses, {"missing": count} for rules that match nothing, {"socks5": true}, {"http2": true} and
 * {"websocket": true} for other protocols on the same port.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import * as mockttp from "mockttp";

const [port, directory, change = "{}"] = process.argv.slice(2);
const { headers, replace, missing = 0, socks5 = false, http2 = false, websocket = false } = JSON.parse(change);
const { key, cert } = await mockttp.generateCACertificate();
const server = mockttp.getLocal({ https: { key, cert }, ...(socks5 && { socks: true }), ...(http2 && { http2: true }) });
for (let number = 0; number < missing; number++) {
  const rule =
    number % 2 === 0
      ? server.forGet(new RegExp(`^https://api${number}\\.example\\.com/v[0-9]+/`))
      : server.forGet(`/orders/${number}/items`).forHost(`shop${number}.example`);
  await rule.thenReply(200);
}
const transformRequest = headers && { updateHeaders: headers };
const transformResponse =
  headers || replace
    ? { ...(headers && { updateHeaders: headers }), ...(replace && { matchReplaceBody: [replace] }) }
    : undefined;
await server
  .forAnyRequest()
  .thenPassThrough({ ...(transformRequest && { transformRequest }), ...(transformResponse && { transformResponse }) });
if (websocket) await server.forAnyWebSocket().thenPassThrough();
await server.start(Number(port));
const ca = join(directory, "mockttp-ca.pem");
writeFileSync(ca, cert);
console.log(JSON.stringify({ port: server.port, ca }));
