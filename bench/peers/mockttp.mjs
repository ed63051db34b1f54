/**
 * mockttp as an intercepting proxy that passes everything on. Its defaults stay: `recordTraffic` keeps each request of
 * a rule in memory, nothing goes to disk, bodies are buffered up to no limit.
 *
 * Usage: node mockttp.mjs <port> <directory> <origin CA file>; prints {"port", "ca"} when it listens.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as mockttp from "mockttp";

const [port, directory, originCa] = process.argv.slice(2);
const { key, cert } = await mockttp.generateCACertificate();
const server = mockttp.getLocal({ https: { key, cert } });
await server.forAnyRequest().thenPassThrough({ additionalTrustedCAs: [{ cert: readFileSync(originCa, "utf8") }] });
await server.start(Number(port));
const ca = join(directory, "mockttp-ca.pem");
writeFileSync(ca, cert);
console.log(JSON.stringify({ port: server.port, ca }));
