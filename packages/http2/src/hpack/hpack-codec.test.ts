import assert from "node:assert/strict";
import { once } from "node:events";
import {
  connect,
  createServer,
  sensitiveHeaders,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import {
  connect as connectSocket,
  createServer as createSocketServer,
  type AddressInfo,
  type Server,
  type Socket,
} from "node:net";
import { test } from "node:test";
import { FLAG, FRAME, frame, FrameReader, PREFACE, settings } from "@headworks/testkit";
import fc from "fast-check";
import { HpackDecoder } from "./hpack-decoder.ts";
import { HpackEncoder } from "./hpack-encoder.ts";
import { STATIC_TABLE } from "./tables.ts";

const LIMITS = { maxFields: 1000, listBytes: 1_000_000 };
const HEADER_TABLE_SIZE = 1;
const PRIORITY = 0x20;

/** Those that HTTP/2 forbids (RFC 9113, 8.2.2), or whose values node checks. */
const NOT_FREE = new Set(["transfer-encoding", "host", "content-length", "authorization", "proxy-authorization"]);
const FREE_NAMES = [...new Set(STATIC_TABLE.map(([name]) => name))].filter(
  (name) => !name.startsWith(":") && !NOT_FREE.has(name),
);

const names = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("accept", "cookie", "date", "etag", "x-own", "x-request-id") },
  { weight: 2, arbitrary: fc.constantFrom(...FREE_NAMES) },
  fc
    .string({ unit: fc.constantFrom(...Array.from("abcxyz019-_.!#$%&'*+^`|~")), minLength: 2, maxLength: 30 })
    .map((text) => `x${text}`),
);
const values = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("", "a", "b", "gzip, deflate", "a value that comes again", "v".repeat(900)) },
  fc.string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)), maxLength: 80 }),
  fc.string({ unit: fc.integer({ min: 0x80, max: 0xff }).map((code) => String.fromCharCode(code)), maxLength: 20 }),
  fc.nat({ max: 500 }).map((count) => "\xfcw".repeat(count)),
);
const fields = fc.array(fc.tuple(names, values), { maxLength: 12 });

/** Some sections, the same ones always: a shrunk section says nothing about a table that others have filled. */
function someSections(count: number): string[][] {
  const pseudo = fc.tuple(
    fc.constantFrom("GET", "OPTIONS", "PATCH"),
    fc.constantFrom("http", "https"),
    fc.constantFrom("a.test", "b.test:8080"),
    fc.constantFrom("/", "/index.html", "/a?b=c", "/%20~;d"),
  );
  return fc
    .sample(fc.tuple(pseudo, fields), { numRuns: count, seed: 7541 })
    .map(([[method, scheme, authority, path], more]) => [
      ":method",
      method,
      ":scheme",
      scheme,
      ":authority",
      authority,
      ":path",
      path,
      // White space around a value is none of it (RFC 9113, 8.2.1).
      ...more.flatMap(([name, value]) => [name, value.trim()]),
    ]);
}

test("sections come back from their blocks, whatever the table's size becomes between them", () => {
  const limit = fc.constantFrom(0, 31, 40, 100, 1000, 4096, 8192);
  const steps = fc.array(fc.tuple(fc.array(limit, { maxLength: 2 }), fields), { maxLength: 12 });
  fc.assert(
    fc.property(steps, (sections) => {
      const encoder = new HpackEncoder();
      const decoder = new HpackDecoder();
      for (const [limits, list] of sections) {
        for (const bytes of limits) encoder.limitTable(bytes);
        const section = list.flat();
        const read: string[] = [];
        assert.equal(decoder.decode(encoder.encode(section), read, LIMITS), true);
        assert.deepEqual(read, section);
      }
    }),
    { numRuns: 300 },
  );
});

async function listening(server: Server | ReturnType<typeof createServer>): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** A section for node's client, which takes only one of some names; some are never indexed. */
function headersOf(section: readonly string[]): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {};
  for (let at = 0; at < section.length; at += 2) headers[section[at] ?? ""] ??= section[at + 1];
  return Object.assign(headers, { [sensitiveHeaders]: ["cookie", "x-own"] });
}

/** Calls back with each field block that a client sends. */
function readBlocks(socket: Socket, onBlock: (block: Buffer) => void): void {
  const reader = new FrameReader();
  let parts: Buffer[] = [];
  let missing = PREFACE.length;
  socket.on("data", (chunk: Buffer) => {
    const skipped = Math.min(missing, chunk.length);
    missing -= skipped;
    for (const { type, flags, payload } of reader.read(chunk.subarray(skipped))) {
      if (type !== FRAME.headers && type !== FRAME.continuation) continue;
      parts.push(type === FRAME.headers && (flags & PRIORITY) !== 0 ? payload.subarray(5) : payload);
      if ((flags & FLAG.endHeaders) === 0) continue;
      onBlock(Buffer.concat(parts));
      parts = [];
    }
  });
}

for (const tableBytes of [4096, 300, 0, 65_536]) {
  test(`node's server reads our blocks, with a table of ${tableBytes} bytes`, { timeout: 20_000 }, async () => {
    const sections = someSections(50);
    const server = createServer({ settings: { headerTableSize: tableBytes } });
    const seen = new Map<number, string[]>();
    const all = Promise.withResolvers<void>();
    server.on("sessionError", all.reject);
    server.on("stream", (stream: ServerHttp2Stream, _headers: IncomingHttpHeaders, _flags: number, raw: string[]) => {
      stream.on("error", () => undefined);
      seen.set(stream.id ?? 0, raw);
      stream.respond({ ":status": 204 }, { endStream: true });
      if (seen.size === sections.length) all.resolve();
    });
    const socket = connectSocket(await listening(server), "127.0.0.1");
    const reader = new FrameReader();
    socket.on("error", all.reject);
    socket.on("data", (chunk) => {
      for (const { type, flags, payload } of reader.read(chunk)) {
        if (type === FRAME.goaway) all.reject(new Error(`GOAWAY ${payload.toString("hex")}`));
        if (type === FRAME.reset) all.reject(new Error(`RST_STREAM ${payload.toString("hex")}`));
        if (type !== FRAME.settings || (flags & FLAG.ack) !== 0) continue;
        const encoder = new HpackEncoder();
        encoder.limitTable(tableBytes);
        socket.write(frame(FRAME.settings, FLAG.ack, 0));
        for (const [at, section] of sections.entries()) {
          socket.write(frame(FRAME.headers, FLAG.endStream | FLAG.endHeaders, 2 * at + 1, encoder.encode(section)));
        }
      }
    });
    socket.write(Buffer.concat([PREFACE, settings()]));
    try {
      await all.promise;
      for (const [at, section] of sections.entries()) assert.deepEqual(seen.get(2 * at + 1), section);
    } finally {
      socket.destroy();
      server.close();
    }
  });

  test(
    `our decoder reads the blocks of node's client, with a table of ${tableBytes} bytes`,
    { timeout: 20_000 },
    async () => {
      const sections = someSections(50);
      const seen: string[][] = [];
      const sent: string[][] = [];
      const all = Promise.withResolvers<void>();
      const server = createSocketServer((socket) => {
        const decoder = new HpackDecoder(tableBytes);
        socket.on("error", () => undefined);
        readBlocks(socket, (block) => {
          const section: string[] = [];
          try {
            assert.equal(decoder.decode(block, section, LIMITS), true);
          } catch (error) {
            all.reject(error);
          }
          seen.push(section);
          if (seen.length === sections.length) all.resolve();
        });
        socket.write(Buffer.concat([settings([HEADER_TABLE_SIZE, tableBytes]), frame(FRAME.settings, FLAG.ack, 0)]));
      });
      const client = connect(`http://127.0.0.1:${await listening(server)}`);
      client.on("error", all.reject);
      try {
        await once(client, "remoteSettings");
        for (const headers of sections.map(headersOf)) {
          client.request(headers, { endStream: true }).on("error", () => undefined);
          sent.push(Object.entries(headers).flat() as string[]);
        }
        await all.promise;
        assert.deepEqual(seen, sent);
      } finally {
        client.destroy();
        server.close();
      }
    },
  );
}
