import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import fc from "fast-check";
import { SocksClient } from "socks";
import { METHOD, REPLY, replyBytes, Socks5ClientHandshake, Socks5ServerHandshake } from "./index.ts";
import type { ClientStep, ReplyCode, ServerStep, Socks5Credentials, Socks5Address } from "./index.ts";

const TARGET: Socks5Address = { host: { kind: "name", name: "origin.test" }, port: 443 };
const bytesOf = (text: string): Buffer => Buffer.from(text, "latin1");
const user = (username: string, password: string): Socks5Credentials => ({
  username: bytesOf(username),
  password: bytesOf(password),
});
const accepts =
  (username: string, password: string) =>
  (given: Socks5Credentials): boolean =>
    bytesOf(username).equals(given.username) && bytesOf(password).equals(given.password);

interface Talk {
  readonly server: ServerStep["outcome"];
  readonly client: ClientStep["outcome"];
}

/** Connects both ends; all bytes are split into pieces of `pieceBytes`. */
function talk(
  client: Socks5ClientHandshake,
  server: Socks5ServerHandshake,
  { pieceBytes, code = REPLY.succeeded, surplus = "" }: { pieceBytes: number; code?: ReplyCode; surplus?: string },
): Talk {
  let toServer = Buffer.from(client.start());
  let toClient = Buffer.alloc(0);
  let serverOutcome: ServerStep["outcome"] = { kind: "going-on" };
  let clientOutcome: ClientStep["outcome"] = { kind: "going-on" };
  while (clientOutcome.kind === "going-on" && (toServer.length > 0 || toClient.length > 0)) {
    if (serverOutcome.kind === "going-on" && toServer.length > 0) {
      const step = server.read(toServer.subarray(0, pieceBytes));
      toServer = toServer.subarray(pieceBytes);
      serverOutcome = step.outcome;
      toClient = Buffer.concat([toClient, step.send]);
      if (step.outcome.kind === "request") toClient = Buffer.concat([toClient, replyBytes(code), bytesOf(surplus)]);
    }
    if (toClient.length > 0) {
      const step = client.read(toClient.subarray(0, pieceBytes));
      toClient = toClient.subarray(pieceBytes);
      clientOutcome = step.outcome;
      toServer = Buffer.concat([toServer, step.send]);
      if (clientOutcome.kind === "open") {
        clientOutcome = { ...clientOutcome, rest: Buffer.concat([clientOutcome.rest, toClient]) };
      }
    }
  }
  return { server: serverOutcome, client: clientOutcome };
}

for (const [name, credentials, server] of [
  ["without authentication", undefined, undefined],
  ["with unrequested credentials", user("u", "p"), undefined],
  ["with the right credentials", user("u", "p\0\xff"), accepts("u", "p\0\xff")],
  ["with an empty password", user("u", ""), accepts("u", "")],
] as const) {
  test(`client and server connect ${name}, however their bytes are split`, () => {
    for (let pieceBytes = 1; pieceBytes < 40; pieceBytes += 1) {
      const both = talk(new Socks5ClientHandshake(TARGET, credentials), new Socks5ServerHandshake(server), {
        pieceBytes,
        surplus: "hello",
      });
      assert.ok(both.server.kind === "request" && both.client.kind === "open", `${pieceBytes}`);
      assert.equal(both.server.request.command, 1);
      assert.deepEqual(both.server.request.host, TARGET.host);
      assert.equal(both.server.request.port, 443);
      assert.equal(both.client.rest.toString(), "hello");
    }
  });
}

test("missing or wrong credentials are refused before the request is read", () => {
  const secret = (): Socks5ServerHandshake => new Socks5ServerHandshake(accepts("u", "p"));
  const refusals: readonly [Socks5Credentials | undefined, ServerStep["outcome"], ClientStep["outcome"]][] = [
    [
      undefined,
      { kind: "refused", refusal: { kind: "no-method" } },
      { kind: "failed", failure: { kind: "no-method", chosen: METHOD.unacceptable } },
    ],
    ...["x", "", "pp"].map((password): [Socks5Credentials, ServerStep["outcome"], ClientStep["outcome"]] => [
      user("u", password),
      { kind: "refused", refusal: { kind: "wrong-credentials" } },
      { kind: "failed", failure: { kind: "wrong-credentials" } },
    ]),
  ];
  for (const [credentials, server, client] of refusals) {
    for (const pieceBytes of [1, 2, 3, 100]) {
      assert.deepEqual(talk(new Socks5ClientHandshake(TARGET, credentials), secret(), { pieceBytes }), {
        server,
        client,
      });
    }
  }
});

test("a request cannot be smuggled past the question for credentials", () => {
  const step = new Socks5ServerHandshake(accepts("u", "p")).read(
    Buffer.concat([bytesOf("\x05\x02\x00\x02"), bytesOf("\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50")]),
  );
  assert.deepEqual(step.outcome, { kind: "refused", refusal: { kind: "invalid", problem: "version" } });
  assert.deepEqual([...step.send], [5, 2]);
});

test("everything at once, the tunnel's first bytes too, is processed in one call", () => {
  const step = new Socks5ServerHandshake(accepts("u", "p")).read(
    bytesOf("\x05\x01\x02\x01\x01u\x01p\x05\x01\x00\x03\x01a\x00\x50GET /"),
  );
  assert.ok(step.outcome.kind === "request");
  assert.equal(step.outcome.rest.toString(), "GET /");
  assert.deepEqual([...step.send], [5, 2, 1, 0]);
});

for (const [name, bytes, sent, problem] of [
  ["an unknown kind of address", "\x05\x01\x00\x05\x01\x00\x09", [5, 0, 5, 8, 0, 1, 0, 0, 0, 0, 0, 0], "address-type"],
  ["a reserved byte", "\x05\x01\x00\x05\x01\x07\x01", [5, 0, 5, 1, 0, 1, 0, 0, 0, 0, 0, 0], "reserved"],
  ["a request of another version", "\x05\x01\x00\x04\x01", [5, 0, 5, 1, 0, 1, 0, 0, 0, 0, 0, 0], "version"],
  ["SOCKS4", "\x04\x01\x00\x50\x7f\x00\x00\x01\x00", [], "version"],
  ["HTTP", "GET / HTTP/1.1\r\n", [], "version"],
] as const) {
  test(`the server replies to ${name} as the standard requires, and is done`, () => {
    const step = new Socks5ServerHandshake(undefined).read(bytesOf(bytes));
    assert.deepEqual([...step.send], sent);
    assert.deepEqual(step.outcome, { kind: "refused", refusal: { kind: "invalid", problem } });
  });
}

test("each reply code reaches the client, including unassigned codes", () => {
  for (const code of [1, 2, 3, 4, 5, 6, 7, 8, 9, 255]) {
    const client = new Socks5ClientHandshake(TARGET, undefined);
    client.read(bytesOf("\x05\x00"));
    const step = client.read(Buffer.from([5, code]));
    assert.deepEqual(step.outcome, { kind: "failed", failure: { kind: "reply", code } });
  }
});

test("protocol errors of servers are distinguished from refusals", () => {
  const responses: readonly [string, unknown][] = [
    ["\x05\x02", { kind: "no-method", chosen: 2 }],
    ["\x05\x01", { kind: "no-method", chosen: 1 }],
    ["HTTP/1.1 400 Bad Request\r\n", { kind: "invalid", problem: "version" }],
    ["\x05\x00\x05\x00\x00\x09", { kind: "invalid", problem: "address-type" }],
    ["\x05\x00HTTP", { kind: "invalid", problem: "version" }],
  ];
  for (const [response, failure] of responses) {
    const { outcome } = new Socks5ClientHandshake(TARGET, undefined).read(bytesOf(response));
    assert.deepEqual(outcome, { kind: "failed", failure });
  }
});

test("no bytes, however split, make either end throw or keep more than a message", () => {
  const pieces = fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 }), { maxLength: 20 });
  const starts = fc.constantFrom("", "\x05\x01\x00", "\x05\x01\x02", "\x05\x00", "\x05\x00\x05\x00\x00\x03");
  fc.assert(
    fc.property(starts, pieces, fc.boolean(), (start, rest, isServer) => {
      const end = isServer
        ? new Socks5ServerHandshake(start === "\x05\x01\x02" ? () => true : undefined)
        : new Socks5ClientHandshake(TARGET, user("u", "p"));
      let readBytes = 0;
      for (const piece of [bytesOf(start), ...rest]) {
        if (piece.length === 0) continue;
        readBytes += piece.length;
        if (end.read(Buffer.from(piece)).outcome.kind !== "going-on") return;
        assert.ok(readBytes <= 257 + 513 + 262, "the longest conversation there is");
      }
    }),
    { numRuns: 2000 },
  );
});

/** A server on a real socket that reports the request and replies with the code. */
async function listen(code: ReplyCode, credentials?: (given: Socks5Credentials) => boolean) {
  const asked: Socks5Address[] = [];
  const server = createServer((socket) => {
    const handshake = new Socks5ServerHandshake(credentials);
    socket.on("data", (chunk: Buffer) => {
      const step = handshake.read(chunk);
      socket.write(step.send);
      if (step.outcome.kind === "refused") socket.end();
      if (step.outcome.kind !== "request") return;
      asked.push({ host: step.outcome.request.host, port: step.outcome.request.port });
      socket.end(Buffer.concat([replyBytes(code), bytesOf("hello")]));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { asked, port: (server.address() as AddressInfo).port, [Symbol.dispose]: () => void server.close() };
}

test("another implementation's client speaks with our server: names, IPv4, IPv6, and credentials", async () => {
  using server = await listen(REPLY.succeeded, accepts("user", "secret"));
  for (const host of ["origin.test", "192.0.2.7", "2001:db8::7"]) {
    const { socket } = await SocksClient.createConnection({
      proxy: { host: "127.0.0.1", port: server.port, type: 5, userId: "user", password: "secret" },
      command: "connect",
      destination: { host, port: 8443 },
    });
    socket.destroy();
  }
  assert.deepEqual(
    server.asked.map(({ host, port }) => [
      host.kind === "name" ? host.name : Buffer.from(host.octets).toString("hex"),
      port,
    ]),
    [
      ["origin.test", 8443],
      ["c0000207", 8443],
      ["20010db8000000000000000000000007", 8443],
    ],
  );
});

test("another implementation's client understands our refusals", async () => {
  using refusing = await listen(REPLY.refused);
  using secret = await listen(REPLY.succeeded, accepts("user", "secret"));
  const ask = async (port: number, login: object): Promise<unknown> =>
    await SocksClient.createConnection({
      proxy: { host: "127.0.0.1", port, type: 5, ...login },
      command: "connect",
      destination: { host: "origin.test", port: 1 },
    });
  await assert.rejects(ask(refusing.port, {}), /ConnectionRefused/);
  await assert.rejects(ask(secret.port, {}), /no accepted|NoAcceptable|no acceptable/i);
  await assert.rejects(ask(secret.port, { userId: "user", password: "wrong" }), /authentication failed/i);
});
