import { writeFile } from "node:fs/promises";
import assert from "node:assert/strict";
import { peer, runProcess } from "@headworks/testkit";
import type { Bench, ClientCase } from "./client-rig.ts";

const go = peer("go");

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
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(os.Stdout, response.Body); err != nil {
		log.Fatal(err)
	}
}
`;

let program: Promise<string> | undefined;

async function build({ directory }: Bench): Promise<string> {
  const source = directory.file("client.go");
  await writeFile(source, PROGRAM);
  const built = directory.file("client");
  const { code, stderr } = await runProcess(go.path, ["build", "-o", built, source], {
    cwd: directory.path,
    env: { GOFLAGS: "-mod=mod", GOPROXY: "off", GO111MODULE: "auto", GOTOOLCHAIN: "local", CGO_ENABLED: "0" },
    timeoutMs: 120_000,
  });
  assert.equal(code, 0, stderr);
  return built;
}

const running =
  (method: string, ...body: string[]): ClientCase["run"] =>
  async (bench, url, trusts) =>
    await runProcess(await (program ??= build(bench)), [url, method, ...body], {
      env: { HTTPS_PROXY: bench.weir.proxyUrl, ...(trusts ? { SSL_CERT_FILE: bench.weir.caFile } : {}) },
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
export const goCases: readonly ClientCase[] = cases.map((each) => ({ ...each, skip: go.skip }));
