import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import { after, before, test } from "node:test";
import { constants, createGzip } from "node:zlib";
import type { StreamFrame, StreamSummary } from "@headworks/capture-contract";
import { peer, proxyClient, spawnProcess, startHttp2Origin, startOrigin, waitUntil } from "@headworks/testkit";
import type { Origin } from "@headworks/testkit";
import { chromium } from "playwright-core";
import { Cleanups, LOCAL_NAMES, originAuthority, startWeir } from "./rig.ts";
import type { Weir } from "./rig.ts";

const curl = peer("curl");
const browser = peer("chromium");
const cleanups = new Cleanups();
/** Open responses by path. */
const open = new Map<string, ServerResponse>();
let weir: Weir;
let origin: Origin;

const PAGE = `<!doctype html><title>events</title><ol></ol><script>
const source = new EventSource("/sse/chromium");
source.addEventListener("tick", (event) => {
  const item = document.createElement("li");
  item.textContent = event.lastEventId + " " + event.data;
  document.querySelector("ol").append(item);
});
</script>`;

function site(request: IncomingMessage, response: ServerResponse): void {
  const path = new URL(request.url ?? "/", "https://origin").pathname;
  request.resume();
  if (!path.startsWith("/sse/")) {
    response.writeHead(200, { "content-type": "text/html" }).end(path === "/page" ? PAGE : "");
    return;
  }
  response.writeHead(200, {
    "content-type": path.endsWith("lines") ? "application/x-ndjson" : "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    ...(path.endsWith("gzip") ? { "content-encoding": "gzip" } : {}),
  });
  response.flushHeaders();
  open.set(path, response);
}

before(async () => {
  weir = cleanups.use(await startWeir());
  origin = cleanups.use(await startOrigin({ handler: site, tls: { authority: originAuthority, names: LOCAL_NAMES } }));
});
after(() => cleanups.run());

const urlOf = (path: string): string => `https://localhost:${origin.port}${path}`;

async function responseOf(path: string): Promise<ServerResponse> {
  return await waitUntil(() => open.get(path), { timeoutMs: 20_000, what: `the request for ${path}` });
}

async function streamOf(path: string, from = weir): Promise<StreamSummary> {
  return await waitUntil(
    async () => (await from.get<StreamSummary[]>("/streams?session_id=all")).find((stream) => stream.path === path),
    { what: `the stream of ${path}` },
  );
}

/** The frames with text, once there are so many. */
async function textsOf({ id }: StreamSummary, count: number, from = weir): Promise<string[]> {
  return await waitUntil(
    async () => {
      const frames = await from.get<StreamFrame[]>(`/streams/${id}/frames?limit=1000`);
      const texts = frames.flatMap(({ text }) => (text === null || text === "" ? [] : [text]));
      return texts.length >= count ? texts : undefined;
    },
    { what: `${count} frames` },
  );
}

/** Sends events one by one: each must have reached the client and the API before the next one is sent. */
async function oneByOne(
  path: string,
  write: (text: string) => void | Promise<void>,
  hasArrived: (event: string) => boolean | Promise<boolean>,
  from = weir,
): Promise<void> {
  const stream = await streamOf(path, from);
  assert.equal(stream.state, "open");
  const sent: string[] = [];
  for (const event of ["one", "two", "größe 🙂"]) {
    await write(`event: tick\nid: ${sent.length + 1}\ndata: ${event}\n\n`);
    sent.push(event);
    await waitUntil(() => hasArrived(event), { timeoutMs: 20_000, what: `${event} at the client` });
    assert.deepEqual(await textsOf(stream, sent.length, from), sent);
  }
}

/** Only a write shows at once whether a half-closed client is gone. */
async function isClosed(path: string, write?: () => void): Promise<StreamSummary> {
  return await waitUntil(async () => {
    write?.();
    const stream = await streamOf(path);
    return stream.state === "closed" ? stream : undefined;
  });
}

test("curl -N gets each event when it is sent, and so does the API", { skip: curl.skip }, async () => {
  await using client = await spawnProcess(curl.path, [
    "-sSN",
    "-x",
    weir.proxyUrl,
    "--cacert",
    weir.caFile,
    urlOf("/sse/curl"),
  ]);
  const response = await responseOf("/sse/curl");
  await oneByOne(
    "/sse/curl",
    (text) => void response.write(text),
    (event) => client.stdout().includes(event),
  );
  response.end();
  assert.equal((await client.exited).code, 0);
  await isClosed("/sse/curl");
});

test(
  "curl -N --compressed: gzip events are read as they arrive, and forwarded unchanged",
  { skip: curl.skip },
  async () => {
    await using client = await spawnProcess(curl.path, [
      "-sSN",
      "--compressed",
      "-x",
      weir.proxyUrl,
      "--cacert",
      weir.caFile,
      urlOf("/sse/gzip"),
    ]);
    const response = await responseOf("/sse/gzip");
    const encoder = createGzip();
    encoder.pipe(response);
    await oneByOne(
      "/sse/gzip",
      async (text) => {
        encoder.write(text);
        await new Promise<void>((resolve) => encoder.flush(constants.Z_SYNC_FLUSH, resolve));
      },
      (event) => client.stdout().includes(event),
    );
    encoder.end();
    assert.equal((await client.exited).code, 0);
  },
);

test("events over HTTP/2 on both sides arrive one by one, too", { skip: curl.skip }, async () => {
  const leaf = originAuthority.issueLeaf(LOCAL_NAMES);
  const streams: ServerHttp2Stream[] = [];
  await using modern = await startHttp2Origin(
    (stream) => {
      stream.respond({ ":status": 200, "content-type": "text/event-stream" });
      streams.push(stream);
    },
    { tls: { cert: leaf.certificatePem, key: leaf.keyPem } },
  );
  await using through = await startWeir();
  await using client = await spawnProcess(curl.path, [
    "-sSN",
    "--http2",
    "-x",
    through.proxyUrl,
    "--cacert",
    through.caFile,
    `https://localhost:${modern.port}/h2`,
  ]);
  const stream = await waitUntil(() => streams[0], { timeoutMs: 20_000 });
  await oneByOne(
    "/h2",
    (text) => void stream.write(text),
    (event) => client.stdout().includes(event),
    through,
  );
  stream.end();
  assert.equal((await client.exited).code, 0);
  const [entry] = await through.waitForEntries(1, "/h2");
  assert.deepEqual([entry?.request.http_version, entry?.response?.http_version], ["HTTP/2", "HTTP/2"]);
});

test("Node's fetch reads each event when it is sent, and so does the API", async () => {
  const program = `for await (const piece of (await fetch(process.argv[1])).body) process.stdout.write(piece);`;
  await using client = await spawnProcess(
    process.execPath,
    ["--input-type=module", "-e", program, urlOf("/sse/node")],
    { env: { NODE_USE_ENV_PROXY: "1", HTTPS_PROXY: weir.proxyUrl, NODE_EXTRA_CA_CERTS: weir.caFile } },
  );
  const response = await responseOf("/sse/node");
  await oneByOne(
    "/sse/node",
    (text) => void response.write(text),
    (event) => client.stdout().includes(event),
  );
  response.end();
  assert.equal((await client.exited).code, 0);
});

test(
  "Chromium's EventSource gets each event when it is sent, and so does the API",
  { skip: browser.skip },
  async () => {
    const instance = await chromium.launch({
      executablePath: browser.path,
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        `--proxy-server=${weir.proxyUrl}`,
        "--proxy-bypass-list=<-loopback>",
      ],
      timeout: 60_000,
    });
    try {
      const page = await (await instance.newContext({ ignoreHTTPSErrors: true })).newPage();
      await page.goto(urlOf("/page"));
      const response = await responseOf("/sse/chromium");
      await oneByOne(
        "/sse/chromium",
        (text) => void response.write(text),
        async (event) =>
          (await page.getByRole("listitem").allTextContents()).some((text) => text.endsWith(` ${event}`)),
      );
      assert.deepEqual(await page.getByRole("listitem").allTextContents(), ["1 one", "2 two", "3 größe 🙂"]);
    } finally {
      await instance.close();
    }
    const closed = await isClosed("/sse/chromium", () => open.get("/sse/chromium")?.write(": anybody?\n\n"));
    assert.match(closed.close_reason ?? "", /client/iu);
  },
);

test("JSON lines that arrive byte by byte become items once they are complete", async () => {
  const client = proxyClient(weir.proxyPort, { ca: weir.caPem, timeoutMs: 60_000 });
  const fetched = client.fetch(urlOf("/sse/lines"));
  const response = await responseOf("/sse/lines");
  response.socket?.setNoDelay(true);
  const text = '{"price":1,"größe":"🙂"}\n';
  for (const byte of Buffer.from(text)) {
    await new Promise<void>((resolve) => void response.write(Buffer.of(byte), () => resolve()));
  }
  assert.deepEqual(await textsOf(await streamOf("/sse/lines"), 1), [text.trim()]);
  response.end();
  assert.equal((await fetched).body.toString(), text);
});

test("a disconnect of the origin keeps the received part of the last event, and the reason of the stream's end", async () => {
  const client = proxyClient(weir.proxyPort, { ca: weir.caPem, timeoutMs: 60_000 });
  const fetched = client.fetch(urlOf("/sse/broken")).catch(() => undefined);
  const response = await responseOf("/sse/broken");
  response.write("data: whole\n\ndata: ha");
  await textsOf(await streamOf("/sse/broken"), 1);
  response.destroy();
  const closed = await isClosed("/sse/broken");
  assert.ok((closed.close_reason ?? "").length > 0);
  assert.deepEqual(await textsOf(closed, 2), ["whole", "ha"]);
  const frames = await weir.get<StreamFrame[]>(`/streams/${closed.id}/frames`);
  assert.deepEqual(frames.at(-1)?.attributes, { incomplete: "true" });
  await fetched;
});
