import { writeFile } from "node:fs/promises";
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { peer, runProcess } from "@headworks/testkit";
import { startBench, testClients } from "./client-rig.ts";
import type { Bench, ClientCase } from "./client-rig.ts";
import { Cleanups } from "./rig.ts";

const go = peer("go");
const cleanups = new Cleanups();
let bench: Bench;

/** Go's `ProxyFromEnvironment` never proxies loopback names, so the program hands its client the same variable itself. */
const PROGRAM = `package main

import (
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
)

func main() {
	proxy, err := url.Parse(os.Getenv("HTTPS_PROXY"))
	if err != nil {
		log.Fatal(err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = http.ProxyURL(proxy)
	var body io.Reader
	if len(os.Args) > 3 {
		body = io.MultiReader(strings.NewReader(os.Args[3]))
	}
	request, err := http.NewRequest(os.Args[2], os.Args[1], body)
	if err != nil {
		log.Fatal(err)
	}
	answer, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(os.Stdout, answer.Body); err != nil {
		log.Fatal(err)
	}
}
`;

let program = "";
before(async () => {
  if (go.skip !== false) return;
  bench = await startBench(cleanups);
  const source = bench.directory.file("client.go");
  await writeFile(source, PROGRAM);
  program = bench.directory.file("client");
  const { code, stderr } = await runProcess(go.path, ["build", "-o", program, source], {
    cwd: bench.directory.path,
    env: { GOFLAGS: "-mod=mod", GOPROXY: "off", GO111MODULE: "auto", GOTOOLCHAIN: "local", CGO_ENABLED: "0" },
    timeoutMs: 120_000,
  });
  assert.equal(code, 0, stderr);
});
after(() => cleanups.run());

const running =
  (method: string, ...body: string[]): ClientCase["run"] =>
  async ({ weir }, url, trusts) =>
    await runProcess(program, [url, method, ...body], {
      env: { HTTPS_PROXY: weir.proxyUrl, ...(trusts ? { SSL_CERT_FILE: weir.caFile } : {}) },
    });

const cases: ClientCase[] = [
  { name: "Go net/http", path: "/go?x=%41", run: running("GET") },
  { name: "Go net/http over plain HTTP", path: "/go-plain", plain: true, run: running("GET") },
  {
    name: "Go net/http with a chunked body",
    path: "/go-put",
    method: "PUT",
    body: Buffer.from("sent by Go"),
    run: running("PUT", "sent by Go"),
  },
];
testClients(
  () => bench,
  cases.map((each) => ({ ...each, skip: go.skip })),
);
