import assert from "node:assert/strict";
import { test } from "node:test";
import type { IncomingMessage, ServerResponse } from "node:http";
import { startOrigin, waitUntil } from "@headworks/testkit";
import type { Exit, Origin, TemporaryDirectory } from "@headworks/testkit";
import { LOCAL_NAMES, originAuthority, startWeir, workDirectory } from "./rig.ts";
import type { Cleanups, Entry, Weir } from "./rig.ts";

/** The environment of a client under test. */
export interface Bench {
  readonly weir: Weir;
  /** HTTPS, with a certificate of {@link originAuthority}, unknown to clients. */
  readonly secure: Origin;
  readonly plain: Origin;
  readonly directory: TemporaryDirectory;
}

/** One use of a client: its request and the expected result. */
export interface ClientCase {
  readonly name: string;
  readonly skip?: string | false;
  /** Path and query, unique in its file. */
  readonly path: string;
  readonly method?: string;
  /** Plain HTTP, without trust in a certificate. */
  readonly plain?: true;
  /** The request body. */
  readonly body?: Buffer;
  /** Status of the origin's response; default 200. */
  readonly status?: number;
  /** Runs the client to its end; without `trusts` it has no CA. */
  readonly run: (bench: Bench, url: string, trusts: boolean) => Promise<Exit>;
}

/** Response body of the client origins: text and non-text bytes. */
const RESPONSE = Buffer.concat([Buffer.from("response of the origin: "), Buffer.from([0, 255, 13, 10, 128])]);

/** Starts Weir and two origins for the tests of one file. */
export async function startBench(cleanups: Cleanups, handler = responseAll): Promise<Bench> {
  const weir = cleanups.use(await startWeir());
  const tls = { authority: originAuthority, names: LOCAL_NAMES };
  const secure = cleanups.use(await startOrigin({ tls, handler }));
  const plain = cleanups.use(await startOrigin({ handler }));
  return { weir, secure, plain, directory: await workDirectory(cleanups) };
}

function responseAll(request: IncomingMessage, response: ServerResponse): void {
  const status = Number(/[?&]status=(\d+)/.exec(request.url ?? "")?.[1] ?? 200);
  request.resume().on("end", () => {
    response.writeHead(status, { "content-type": "application/octet-stream", "x-origin": "yes" });
    response.end(request.method === "HEAD" ? undefined : RESPONSE);
  });
}

/** Registers one test for each case that trusts Weir's CA, and one for each HTTPS case that does not. */
export function testClients(bench: () => Bench, cases: readonly ClientCase[]): void {
  for (const each of cases) {
    const { name, skip = false } = each;
    void test(
      `${name}: the exchange passes and its entry is accurate`,
      { skip },
      async () => await trusted(bench(), each),
    );
    if (each.plain === true) continue;
    void test(
      `${name}: without trust it refuses, and an entry has the reason`,
      { skip },
      async () => await distrusting(bench(), each),
    );
  }
}

async function trusted(bench: Bench, each: ClientCase): Promise<void> {
  const { weir } = bench;
  const url = urlOf(bench, each);
  const exit = await each.run(bench, url, true);
  const output = `${exit.stdout}\n${exit.stderr}`;
  assert.equal(exit.code, 0, output);
  if (each.method !== "HEAD") assert.ok(exit.stdout.includes("response of the origin: "), output);
  const [entry] = await weir.waitForEntries(1, each.path);
  assert.ok(entry);
  assert.equal(entry.failure, null);
  assert.equal(entry.state, "complete");
  assert.equal(entry.request.method, each.method ?? "GET");
  assert.equal(entry.request.url, url);
  assert.equal(entry.response?.status_code, each.status ?? 200);
  assert.deepEqual(await weir.body(entry, "response"), each.method === "HEAD" ? Buffer.alloc(0) : RESPONSE);
  assert.deepEqual(await weir.body(entry, "request"), each.body ?? Buffer.alloc(0));
  assertTlsFacts(entry, each.plain === true);
}

/** TLS of both sides, from the entry. */
export function assertTlsFacts(entry: Entry, isPlain: boolean): void {
  if (isPlain) {
    assert.equal(entry.tls, null);
    return;
  }
  assert.match(entry.tls?.client_version ?? "", /^TLSv1\.[23]$/);
  assert.match(entry.tls?.client_cipher ?? "", /^TLS_/);
  assert.equal(entry.tls?.sni, "localhost");
  assert.equal(entry.tls?.upstream_version, "TLSv1.3");
  assert.equal(entry.tls?.upstream_verified, true);
  assert.match(entry.tls?.upstream_issuer ?? "", /Origins of the end-to-end tests/);
}

async function distrusting(bench: Bench, each: ClientCase): Promise<void> {
  const { weir, secure } = bench;
  const requested = secure.requests.length;
  const before = (await refusals(weir)).length;
  const exit = await each.run(bench, urlOf(bench, each), false);
  assert.notEqual(exit.code, 0, `the client accepted an unknown certificate:\n${exit.stdout}\n${exit.stderr}`);
  assert.equal(secure.requests.length, requested, "a request reached the origin");
  const said = await waitUntil(
    async () => {
      const all = await refusals(weir);
      return all.length > before && all;
    },
    { what: "an entry that says that the client refused" },
  );
  for (const entry of said) {
    assert.equal(entry.request.method, "CONNECT");
    assert.equal(entry.response?.status_code, 502);
    assert.equal(entry.failure?.side, "client");
  }
}

/** Entries that report a client without trust in Weir. */
export async function refusals(weir: Weir): Promise<Entry[]> {
  return (await weir.entries()).filter(({ failure }) => failure?.code === "CLIENT_CERTIFICATE_REFUSED");
}

function urlOf({ secure, plain }: Bench, { path, plain: isPlain }: ClientCase): string {
  return isPlain === true ? `http://localhost:${plain.port}${path}` : `https://localhost:${secure.port}${path}`;
}
