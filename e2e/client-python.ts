import { spawnSync } from "node:child_process";
import { peer, runProcess } from "@headworks/testkit";
import type { ClientCase } from "./client-rig.ts";

const python = peer("python3");
const requests = requestsSkip();
/** One of several installed Pythons may have `requests`. */
function requestsSkip(): { readonly path: string; readonly skip: string | false } {
  for (const path of [python.path, "/usr/bin/python3"]) {
    if (path !== "" && spawnSync(path, ["-c", "import requests"]).status === 0) return { path, skip: false };
  }
  const skip = "no python3 has the module requests";
  if (process.env["CI"] === "true") throw new Error(`${skip}, and with CI=true nothing may be skipped`);
  process.stdout.write(`# skipping: ${skip}\n`);
  return { path: "", skip };
}

const URLLIB = `
import sys, urllib.request
data = sys.stdin.buffer.read() or None
with urllib.request.urlopen(urllib.request.Request(sys.argv[1], data=data)) as response:
    sys.stdout.buffer.write(response.read())
`;

// The body is sent in one piece: requests before 2.29, as in Debian 12, sends streamed bodies past the proxy's CONNECT.
const REQUESTS = `
import sys, requests
with requests.Session() as session:
    body = sys.stdin.buffer.read()
    response = session.request(sys.argv[2], sys.argv[1], data=body or None)
    response.raise_for_status()
    sys.stdout.buffer.write(response.content)
`;

const running =
  (
    path: () => string,
    program: string,
    trustVariable: string,
    input: Buffer | undefined,
    ...args: string[]
  ): ClientCase["run"] =>
  async ({ weir }, url, trusts) =>
    await runProcess(path(), ["-c", program, url, ...args], {
      ...(input === undefined ? {} : { input }),
      env: {
        https_proxy: weir.proxyUrl,
        http_proxy: weir.proxyUrl,
        ...(trusts ? { [trustVariable]: weir.caFile } : {}),
      },
      timeoutMs: 20_000,
    });

const body = Buffer.from("sent by python");
const urllib = (input?: Buffer): ClientCase["run"] => running(() => python.path, URLLIB, "SSL_CERT_FILE", input);
const session = (method: string, input?: Buffer): ClientCase["run"] =>
  running(() => requests.path, REQUESTS, "REQUESTS_CA_BUNDLE", input, method);

export const pythonCases: readonly ClientCase[] = [
  { name: "Python urllib", path: "/urllib?q=%C3%A4", skip: python.skip, run: urllib() },
  { name: "Python urllib over plain HTTP", path: "/urllib-plain", plain: true, skip: python.skip, run: urllib() },
  {
    name: "Python urllib with a body",
    path: "/urllib-post",
    method: "POST",
    body,
    skip: python.skip,
    run: urllib(body),
  },
  { name: "Python requests", path: "/requests", skip: requests.skip, run: session("GET") },
  {
    name: "Python requests over plain HTTP",
    path: "/requests-plain",
    plain: true,
    skip: requests.skip,
    run: session("GET"),
  },
  {
    name: "Python requests with a body",
    path: "/requests-put",
    method: "PUT",
    body,
    skip: requests.skip,
    run: session("PUT", body),
  },
];
