import { createServer } from "node:http";
import { ignoreSignals, STOP_SIGNALS } from "@headworks/process-signals";
import type { IncomingMessage, RequestListener, Server } from "node:http";

/** Ports that examples/gateway/quickstart.yaml names. */
export const ECHO_PORT = 9001;
export const SINK_PORT = 9002;
const MAX_BODY_BYTES = 65_536;

/** Responds with the received request as JSON. */
export const echo: RequestListener = (request, response) => {
  void bodyOf(request).then((body) => {
    const { method, url, headers } = request;
    response.writeHead(200, { "Content-Type": "application/json" });
    response.end(`${JSON.stringify({ method, path: url, headers, body }, null, 2)}\n`);
  });
};

/** Prints each received event in one line. */
export function sink(print: (line: string) => void): RequestListener {
  return (request, response) => {
    void bodyOf(request).then((body) => {
      print(`webhook: ${body.replace(/[^\x20-\x7e]/g, ".")}`);
      response.writeHead(204).end();
    });
  };
}

/** At most the first 64 KiB. */
async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const piece of request) if (text.length < MAX_BODY_BYTES) text += String(piece);
  return text;
}

async function listen(server: Server, port: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
}

if (import.meta.main) {
  const servers = [createServer(echo), createServer(sink((line) => console.error(line)))];
  ignoreSignals();
  for (const signal of STOP_SIGNALS) {
    process.once(signal, () => {
      for (const server of servers) {
        server.close();
        server.closeAllConnections();
      }
    });
  }
  try {
    await Promise.all(servers.map(async (server, at) => await listen(server, at === 0 ? ECHO_PORT : SINK_PORT)));
  } catch (error) {
    console.error(`The quickstart's own servers cannot listen: ${(error as Error).message}`);
    process.exitCode = 1;
  }
}
