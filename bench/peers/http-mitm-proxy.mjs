/**
 * http-mitm-proxy without handlers: it forwards and stores nothing. Kept connections are enabled, which is not its
 * default, because it is several times slower without them.
 *
 * Usage: NODE_EXTRA_CA_CERTS=<origin CA file> node http-mitm-proxy.mjs <port> <directory>; prints {"port", "ca"}.
 */
import { join } from "node:path";
import { Proxy } from "http-mitm-proxy";

const [port, directory] = process.argv.slice(2);
const sslCaDir = join(directory, "http-mitm-proxy");
const proxy = new Proxy();
proxy.onError((_context, error) => {
  if (error?.code !== "ECONNRESET" && error?.code !== "EPIPE") console.error(error?.message ?? error);
});
proxy.listen({ port: Number(port), host: "127.0.0.1", sslCaDir, keepAlive: true }, (error) => {
  if (error) throw error;
  console.log(JSON.stringify({ port: proxy.httpPort, ca: join(sslCaDir, "certs/ca.pem") }));
});
