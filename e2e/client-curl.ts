import { peer, runProcess } from "@headworks/testkit";
import type { ClientCase } from "./client-rig.ts";

const curl = peer("curl");
const upload = Buffer.from("field=value&other=%00\r\n".repeat(9000));

const byFlag =
  (...args: string[]): ClientCase["run"] =>
  async ({ weir }, url, trusts) =>
    await runProcess(curl.path, [
      "-sS",
      "-x",
      weir.proxyUrl,
      ...(trusts ? ["--cacert", weir.caFile] : []),
      ...args,
      url,
    ]);

const byEnvironment =
  (variable: string, ...args: string[]): ClientCase["run"] =>
  async ({ weir }, url, trusts) =>
    await runProcess(curl.path, ["-sS", ...args, url], {
      env: { [variable]: weir.proxyUrl, ...(trusts ? { CURL_CA_BUNDLE: weir.caFile } : {}) },
    });

/** A body from a file, which curl announces with `Expect: 100-continue`. */
const sending =
  (...args: string[]): ClientCase["run"] =>
  async ({ weir }, url, trusts) =>
    await runProcess(
      curl.path,
      ["-sS", "-x", weir.proxyUrl, ...(trusts ? ["--cacert", weir.caFile] : []), ...args, url],
      { input: upload },
    );

export const curlCases: readonly ClientCase[] = [
  { name: "curl -x", path: "/flag?x=1&y=%2F%2e", run: byFlag() },
  { name: "curl --http1.1 and a name of its own", path: "/http11", run: byFlag("--http1.1", "-A", "weir-test") },
  { name: "curl over TLS 1.2", path: "/tls12", run: byFlag("--tls-max", "1.2") },
  { name: "curl -x to plain HTTP", path: "/plain", plain: true, run: byFlag() },
  { name: "curl -p, a tunnel also for plain HTTP", path: "/tunnel", plain: true, run: byFlag("-p") },
  { name: "curl with https_proxy", path: "/environment", run: byEnvironment("https_proxy") },
  { name: "curl with ALL_PROXY", path: "/all", run: byEnvironment("ALL_PROXY") },
  { name: "curl with http_proxy", path: "/plain-environment", plain: true, run: byEnvironment("http_proxy") },
  { name: "curl -I", path: "/head", method: "HEAD", run: byFlag("-I") },
  { name: "curl of an error", path: "/teapot?status=418", status: 418, run: byFlag() },
  {
    name: "curl -T from standard input, chunked",
    path: "/put",
    method: "PUT",
    body: upload,
    run: sending("-T", "-"),
  },
  {
    name: "curl --data-binary with a length",
    path: "/post",
    method: "POST",
    body: upload,
    run: sending("--data-binary", "@-", "-H", "Expect: 100-continue"),
  },
  { name: "curl -X with an uncommon method", path: "/report", method: "M-SEARCH", run: byFlag("-X", "M-SEARCH") },
].map((each): ClientCase => ({ ...(each as ClientCase), skip: curl.skip }));
