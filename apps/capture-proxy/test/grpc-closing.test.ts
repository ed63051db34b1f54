import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectHttp2, createServer } from "node:http2";
import type { ClientHttp2Session, Http2Session, ServerHttp2Stream } from "node:http2";
import { connect } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { after, before, test } from "node:test";
import type { GrpcConnection, GrpcStream } from "@headworks/capture-contract";
import { frameMessage } from "@headworks/grpc-framing";
import { credentials, proxyClient, secure, startHttp2Origin, waitUntil } from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import { startProxyRig } from "./proxy-rig.ts";
import type { ProxyRig } from "./proxy-rig.ts";

const GRPC = { "content-type": "application/grpc" };
const GRPC_WEB = { "content-type": "application/grpc-web" };
const origin = createServer();
let rig: ProxyRig;
before(async () => {
  rig = await startProxyRig();
  origin.listen(0, "127.0.0.1");
  await once(origin, "listening");
});
after(async () => {
  await rig[Symbol.asyncDispose]();
  origin.close();
});

/** A call that runs: what the client and the origin hold of it. */
interface RunningCall {
  readonly client: ClientHttp2Session;
  readonly origin: Http2Session;
  readonly stream: ServerHttp2Stream;
  readonly end: () => Promise<void>;
}

async function startCall(): Promise<RunningCall> {
  const { port } = origin.address() as AddressInfo;
  const tunnel: Socket = connect(Number(new URL(rig.proxy.addresses.proxy).port), "127.0.0.1");
  tunnel.write(`CONNECT 127.0.0.1:${port} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
  await once(tunnel, "data");
  const client = connectHttp2(`http://127.0.0.1:${port}`, { createConnection: () => tunnel });
  const asked = client.request({ ":method": "POST", ":path": "/shop.v1.Orders/Watch", te: "trailers", ...GRPC });
  asked.write(frameMessage(Buffer.from("a")));
  const [stream] = (await once(origin, "stream")) as [ServerHttp2Stream];
  stream.on("error", () => undefined);
  stream.respond({ ":status": 200, ...GRPC }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.write(frameMessage(Buffer.from("b")));
  const { session } = stream;
  assert.ok(session);
  return {
    client,
    origin: session,
    stream,
    end: async () => {
      asked.resume();
      asked.end();
      stream.end();
      await once(asked, "close");
      client.destroy();
    },
  };
}

const theConnection = async (state: GrpcConnection["state"]): Promise<GrpcConnection> =>
  await waitUntil(
    async () => {
      const [found] = await rig.api<GrpcConnection[]>("GET", "/grpc/connections");
      return found?.state === state ? found : undefined;
    },
    { what: `a connection that is ${state}` },
  );

for (const [who, goaway] of [
  ["its origin", (call: RunningCall) => call.origin.goaway()],
  ["its client", (call: RunningCall) => call.client.goaway()],
] as const) {
  test(`a connection is closing while calls run on it after GOAWAY of ${who}, and closed after the last of them`, async () => {
    const call = await startCall();
    await theConnection("active");
    goaway(call);
    const { active_streams: running } = await theConnection("closing");
    assert.equal(running, 1);
    const [shown] = await rig.api<GrpcStream[]>("GET", "/grpc/streams");
    assert.deepEqual([shown?.state, shown?.status_code], ["open", null]);
    await call.end();
    const closed = await theConnection("closed");
    assert.deepEqual([closed.active_streams, closed.total_streams], [0, 1]);
    const [ended] = await rig.api<GrpcStream[]>("GET", "/grpc/streams");
    assert.equal(ended?.status_code, 0);
    await rig.api("POST", "/grpc/clear", undefined, 204);
  });
}

test("GOAWAY of one client's connection says nothing of another's", async () => {
  const first = await startCall();
  const second = await startCall();
  first.client.goaway();
  await waitUntil(async () => {
    const found = await rig.api<GrpcConnection[]>("GET", "/grpc/connections");
    const states = found.map(({ state }) => state);
    return states.length === 2 && states.includes("closing") && states.includes("active");
  });
  await first.end();
  await second.end();
  await rig.api("POST", "/grpc/clear", undefined, 204);
});

test("a client of HTTP/1.1 has its connection closing too when its origin, which speaks HTTP/2, says GOAWAY", async () => {
  const authority = CertificateAuthority.create({ commonName: "Origins" });
  const streams: ServerHttp2Stream[] = [];
  const answering = (stream: ServerHttp2Stream): void => {
    streams.push(stream);
    stream.respond({ ":status": 200, ...GRPC_WEB });
  };
  await using own = await startHttp2Origin(answering, {
    tls: credentials(authority, { dns: ["localhost"] }),
  });
  await rig.api("PATCH", "/config", { upstream_insecure_hosts: ["localhost"] });
  const { connection } = await proxyClient(Number(new URL(rig.proxy.addresses.proxy).port)).tunnel(
    `localhost:${own.port}`,
  );
  const client = await secure(connection.socket, { servername: "localhost", rejectUnauthorized: false });
  const body = frameMessage(Buffer.from("a"));
  await client.write(
    `POST /shop.v1.Orders/Watch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/grpc-web\r\nContent-Length: ${body.length}\r\n\r\n`,
  );
  await client.write(body);
  await waitUntil(() => streams.length === 1, { what: "the call at its origin" });
  await theConnection("active");
  for (const session of own.sessions) session.goaway();
  await theConnection("closing");
  for (const stream of streams) stream.end();
  await theConnection("closed");
  client.destroy();
  await rig.api("POST", "/grpc/clear", undefined, 204);
});
