import { runProcess } from "@headworks/testkit";
import type { ClientCase } from "./client-rig.ts";

const FETCH = `
const [url, method, body] = process.argv.slice(1);
const response = await fetch(url, { method, ...(body ? { body, duplex: "half" } : {}) });
process.stdout.write(Buffer.from(await response.arrayBuffer()));
`;

const REQUEST = `
import http from "node:http";
import https from "node:https";
const [url, method, body] = process.argv.slice(1);
const request = (url.startsWith("https:") ? https : http).request(url, { method }, (response) => response.pipe(process.stdout));
request.end(body);
`;

/** Like an application that sends CONNECT itself. */
const BY_HAND = `
import http from "node:http";
import tls from "node:tls";
import https from "node:https";
const [address, method] = process.argv.slice(1);
const url = new URL(address);
const proxy = new URL(process.env.HTTPS_PROXY);
http.request({ host: proxy.hostname, port: proxy.port, method: "CONNECT", path: url.host }).on("connect", (response, socket) => {
  const secure = tls.connect({ socket, servername: url.hostname });
  https.request(url, { method, createConnection: () => secure }, (response) => {
    response.pipe(process.stdout);
    response.on("end", () => secure.end());
  }).end();
}).end();
`;

const running =
  (program: string, method = "GET", body = ""): ClientCase["run"] =>
  async ({ weir }, url, trusts) =>
    await runProcess(process.execPath, ["--input-type=module", "-e", program, url, method, body], {
      env: {
        NODE_USE_ENV_PROXY: "1",
        HTTP_PROXY: weir.proxyUrl,
        HTTPS_PROXY: weir.proxyUrl,
        ...(trusts ? { NODE_EXTRA_CA_CERTS: weir.caFile } : {}),
      },
      timeoutMs: 20_000,
    });

const byHand: ClientCase["run"] = async ({ weir }, url, trusts) =>
  await runProcess(process.execPath, ["--input-type=module", "-e", BY_HAND, url, "DELETE"], {
    env: { HTTPS_PROXY: weir.proxyUrl, ...(trusts ? { NODE_EXTRA_CA_CERTS: weir.caFile } : {}) },
    timeoutMs: 20_000,
  });

export const nodeCases: readonly ClientCase[] = [
  { name: "Node fetch", path: "/fetch?x=1", run: running(FETCH) },
  {
    name: "Node fetch with a body",
    path: "/fetch-post",
    method: "POST",
    body: Buffer.from("ä"),
    run: running(FETCH, "POST", "ä"),
  },
  { name: "Node fetch over plain HTTP", path: "/fetch-plain", plain: true, run: running(FETCH) },
  { name: "node:https with the environment's proxy", path: "/https", run: running(REQUEST) },
  { name: "node:https through a CONNECT of its own", path: "/by-hand", method: "DELETE", run: byHand },
];
