/**
 * mockttp as an intercepting proxy that passes everything on. Its defaults stay: `recordTraffic` keeps each request of
 * a rule in memory, nothing goes to disk. The origin's CA comes through Node's environment: given as an option of the
 * rule it would make each request several times dearer.
 *
 * Usage: NODE_EXTRA_CA_CERTS=<origin CA file> node mockttp.mjs <port> <directory>; prints {"port", "ca"} when it
 * listens.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import * as mockttp from "mockttp";

const [port, directory] = process.argv.slice(2);
const { key, cert } = await mockttp.generateCACertificate();
const server = mockttp.getLocal({ https: { key, cert } });
await server.forAnyRequest().thenPassThrough();
await server.start(Number(port));
const ca = join(directory, "mockttp-ca.pem");
writeFileSync(ca, cert);
console.log(JSON.stringify({ port: server.port, ca }));
