import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { credentials, Metadata, type ChannelOptions, type ServiceError } from "@grpc/grpc-js";
import type { GrpcFrame, GrpcSchema, GrpcStats, GrpcStream } from "@headworks/capture-contract";
import { frameMessage } from "@headworks/grpc-framing";
import { peer, runProcess, waitUntil } from "@headworks/testkit";
import { shopClient, SHOP_TEXT, startShop, type Order, type Shop, type ShopClient } from "./grpc-peers.ts";
import { Cleanups, LOCAL_NAMES, originAuthority, startWeir, type Weir } from "./rig.ts";

const TRANSPORTS = ["h2c", "TLS"] as const;
type Transport = (typeof TRANSPORTS)[number];

const cleanups = new Cleanups();
const shops = new Map<Transport, Shop>();
let weir: Weir;
before(async () => {
  weir = cleanups.use(await startWeir());
  const leaf = originAuthority.issueLeaf(LOCAL_NAMES);
  shops.set("h2c", cleanups.use(await startShop()));
  shops.set("TLS", cleanups.use(await startShop({ cert: leaf.certificatePem, key: leaf.keyPem })));
  // grpc-js reads the variable when a client is created.
  process.env["grpc_proxy"] = weir.proxyUrl;
});
after(async () => {
  delete process.env["grpc_proxy"];
  await cleanups.run();
});

async function api<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await fetch(`${weir.apiUrl}/api${path}`, {
    method,
    ...(body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
  });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

/** Runs `use` with a client of its own, after deleting all recorded traffic. */
async function withClient<T>(
  transport: Transport,
  use: (client: ShopClient) => Promise<T>,
  options: ChannelOptions = {},
): Promise<T> {
  await api("POST", "/traffic/clear");
  const secure = transport === "TLS" ? credentials.createSsl(Buffer.from(weir.caPem)) : credentials.createInsecure();
  const client = shopClient(`localhost:${shops.get(transport)?.port ?? 0}`, secure, options);
  try {
    return await use(client);
  } finally {
    client.close();
  }
}

async function theCall(isReady: (one: GrpcStream) => boolean = ({ state }) => state === "closed"): Promise<GrpcStream> {
  return await waitUntil(
    async () => {
      const [found] = await weir.get<GrpcStream[]>("/grpc/streams");
      return found !== undefined && isReady(found) ? found : undefined;
    },
    { timeoutMs: 15_000, what: "the call" },
  );
}

const framesOf = async (id: string): Promise<GrpcFrame[]> =>
  await weir.get<GrpcFrame[]>(`/grpc/frames?stream_id=${id}&order=asc&limit=1000`);

const withSchema = async (): Promise<GrpcSchema> =>
  await api("POST", "/grpc/schemas", { files: [{ name: "grpc-shop.proto", text: SHOP_TEXT }] });

function unary(client: ShopClient, order: Order, metadata = new Metadata()): Promise<Order> {
  return new Promise((resolve, reject) => {
    client.get(order, metadata, {}, (error, value) => (error === null ? resolve(value ?? {}) : reject(error)));
  });
}

const ORDER: Order = {
  id: "9007199254740993",
  note: "für 100 €",
  numbers: [1, -1],
  prices: { a: 1.5 },
  size: "LARGE",
  card: "4",
};

for (const transport of TRANSPORTS) {
  test(`a unary call over ${transport} has decoded messages, metadata of both sides and its status`, async () => {
    const metadata = new Metadata();
    metadata.set("x-asked", "what");
    const response = await withClient(transport, (client) => unary(client, ORDER, metadata));
    assert.equal(response.note, ORDER.note);
    const { id } = await theCall();
    assert.equal((await framesOf(id))[0]?.decoded?.json, null);
    const schema = await withSchema();
    const call = await theCall();
    assert.deepEqual(
      [call.service, call.method, call.message_type, call.request_type, call.status_code, call.issues, call.failure],
      ["shop.v1.Orders", "Get", "unary", "shop.v1.Order", 0, [], null],
    );
    assert.equal(call.request_metadata["x-asked"], "what");
    assert.equal(call.response_metadata["x-initial"], "one");
    assert.equal(call.response_trailers["x-trailing"], "what");
    const frames = await framesOf(id);
    assert.deepEqual(
      frames.map(({ direction, decoded }) => [direction, decoded?.json ?? null]),
      [
        ["request", ORDER],
        ["response", ORDER],
        ["response", null],
      ],
    );
    assert.equal(frames[2]?.trailers?.["grpc-status"], "0");
    const [entry] = await weir.entries("/shop.v1.Orders/Get");
    assert.equal(entry?.id, id);
    await api("DELETE", `/grpc/schemas/${schema.id}`);
  });

  test(`a thousand messages of a server over ${transport} are stored in order`, async () => {
    const got = await withClient(transport, async (client) => {
      const notes: string[] = [];
      for await (const order of client.watch({ id: "1000" })) notes.push((order as Order).note ?? "");
      return notes;
    });
    assert.equal(got.length, 1000);
    const call = await theCall();
    assert.deepEqual([call.message_type, call.frames_received, call.status_code], ["serverstream", 1000, 0]);
    const frames = await framesOf(call.id);
    assert.deepEqual(
      frames.slice(1).map(({ decoded }) => decoded?.fields.find(({ number }) => number === 2)?.value.value),
      got.slice(0, 999),
    );
  });

  test(`messages of a client over ${transport} are counted and decoded`, async () => {
    const response = await withClient(
      transport,
      (client) =>
        new Promise<Order>((resolve, reject) => {
          const call = client.load((error, value) => (error === null ? resolve(value ?? {}) : reject(error)));
          for (let number = 0; number < 50; number += 1) call.write({ id: String(number) });
          call.end();
        }),
    );
    assert.equal(response.numbers?.length, 50);
    const call = await theCall();
    assert.deepEqual([call.message_type, call.frames_sent, call.frames_received], ["clientstream", 50, 1]);
  });

  test(`both sides send in turn over ${transport}, and each message is shown before the next one is sent`, async () => {
    await withClient(transport, async (client) => {
      const call = client.talk();
      for (const [at, note] of ["one", "two", "three"].entries()) {
        call.write({ note });
        const [response] = (await once(call, "data")) as [Order];
        assert.equal(response.note, note.toUpperCase());
        const shown = await theCall(({ frames_received: received }) => received === at + 1);
        assert.deepEqual([shown.frames_sent, shown.state, shown.status_code], [at + 1, "open", null]);
      }
      call.end();
      await once(call, "status");
    });
    const call = await theCall();
    assert.deepEqual([call.message_type, call.status_code, call.state], ["bidistream", 0, "closed"]);
  });

  test(`gzip messages over ${transport} are stored decompressed`, async () => {
    const note = "again and ".repeat(5000);
    const options = { "grpc.default_compression_algorithm": 2 };
    assert.equal((await withClient(transport, (client) => unary(client, { note }), options)).note, note);
    const call = await theCall();
    assert.equal(call.compression, "gzip");
    const [request] = await framesOf(call.id);
    assert.deepEqual([request?.compressed, request?.issues], [true, []]);
    assert.ok((request?.size ?? 0) > 50_000 && (request?.wire_size ?? 0) < 1000);
    assert.equal(request?.decoded?.fields[0]?.value.value, note);
  });

  test(`an error over ${transport} has its code, message and details`, async () => {
    const error = await withClient(
      transport,
      (client) =>
        new Promise<ServiceError | null>((resolve) => {
          client.fail({ id: "5", note: "für 100 %" }, (failure) => resolve(failure));
        }),
    );
    assert.deepEqual([error?.code, error?.details], [5, "no: für 100 %"]);
    const call = await theCall();
    assert.deepEqual([call.status_code, call.status_name, call.status_message], [5, "NOT_FOUND", "no: für 100 %"]);
    assert.deepEqual(call.status_details, [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "GONE" }]);
    assert.equal((await weir.get<GrpcStats>("/grpc/stats")).by_status["5"], 1);
  });

  test(`a deadline and a cancelled call over ${transport} have their reason`, async () => {
    await withClient(transport, async (client) => {
      const call = client.wait({}, { deadline: Date.now() + 700 });
      const [error] = (await once(call, "error")) as [ServiceError];
      assert.equal(error.code, 4);
      const shown = await theCall();
      // If the server notices the deadline first, it sends the status.
      assert.ok(shown.status_code === 4 || (shown.status_code === null && shown.failure !== null));
      assert.ok((shown.deadline_ms ?? 0) > 0 && (shown.deadline_ms ?? 0) <= 700);
    });
    await withClient(transport, async (client) => {
      const call = client.wait({});
      const failed = once(call, "error");
      await theCall(({ state }) => state === "halfclosedlocal");
      call.cancel();
      assert.equal(((await failed)[0] as ServiceError).code, 1);
      assert.notEqual((await theCall()).failure, null);
    });
  });

  test(`a server over ${transport} provides its schema by reflection`, async () => {
    const url = `${transport === "TLS" ? "https" : "http"}://localhost:${shops.get(transport)?.port ?? 0}`;
    const schema = await api<GrpcSchema>("POST", "/grpc/schemas/reflect", { url });
    assert.deepEqual(
      schema.services.map(({ name, methods }) => [name, methods.length]),
      [["shop.v1.Orders", 6]],
    );
    await withClient(transport, (client) => unary(client, ORDER));
    const call = await theCall();
    assert.equal(call.schema_id, schema.id);
    assert.deepEqual((await framesOf(call.id))[0]?.decoded?.json, ORDER);
    await api("DELETE", `/grpc/schemas/${schema.id}`);
  });

  test(`concurrent calls over ${transport} on one connection are separate`, async () => {
    await withClient(transport, async (client) => {
      const notes = Array.from({ length: 200 }, (_, at) => `call ${at}`);
      const responses = await Promise.all(notes.map((note) => unary(client, { note })));
      assert.deepEqual(
        responses.map(({ note }) => note),
        notes,
      );
    });
    const stats = await waitUntil(async () => {
      const found = await weir.get<GrpcStats>("/grpc/stats");
      return found.total_streams === 200 && found.active_streams === 0 ? found : undefined;
    });
    assert.deepEqual(
      [stats.connections, stats.by_status, stats.by_method],
      [1, { 0: 200 }, { "/shop.v1.Orders/Get": 200 }],
    );
  });
}

const curl = peer("curl");
test("curl makes a gRPC-Web call over HTTP/1.1", { skip: curl.skip }, async () => {
  const trailers = frameMessage(Buffer.from("grpc-status:0\r\n"), 0x80);
  const server = createServer((request, response) => {
    response.writeHead(200, { "content-type": "application/grpc-web+proto" });
    request.on("data", (piece: Buffer) => void response.write(piece));
    request.on("end", () => void response.end(trailers));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    await api("POST", "/traffic/clear");
    const { port } = server.address() as AddressInfo;
    const message = frameMessage(Buffer.from("089601", "hex"));
    const type = "Content-Type: application/grpc-web+proto";
    const url = `http://127.0.0.1:${port}/shop.v1.Orders/Get`;
    const args = ["-sS", "--noproxy", "", "-x", weir.proxyUrl, "-H", type, "--data-binary", "@-", "-o", "-", url];
    const done = await runProcess(curl.path, args, { input: message, timeoutMs: 20_000 });
    assert.equal(done.code, 0, done.stderr);
    const call = await theCall();
    assert.deepEqual([call.protocol, call.status_code, call.frames_sent, call.frames_received], ["grpc-web", 0, 1, 1]);
  } finally {
    server.close();
    server.closeAllConnections();
  }
});
