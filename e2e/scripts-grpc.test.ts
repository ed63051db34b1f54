import assert from "node:assert/strict";
import { once } from "node:events";
import { after, afterEach, before, test } from "node:test";
import { credentials, Metadata, type ChannelOptions, type ServiceError } from "@grpc/grpc-js";
import type {
  GrpcFrame,
  GrpcStream,
  NewScript,
  Script,
  ScriptExecution,
  TrafficEntry,
} from "@headworks/capture-contract";
import { waitUntil } from "@headworks/testkit";
import { shopClient, startShop, type Order, type Shop, type ShopClient } from "./grpc-peers.ts";
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
afterEach(async () => {
  for (const { id } of await weir.get<Script[]>("/scripts")) {
    await api("DELETE", `/scripts/${id}/history`);
    await api("DELETE", `/scripts/${id}`);
  }
  await api("POST", "/traffic/clear");
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

/** Functions for messages of the shop whose notes are short: `12 length note`, after an id of one octet. */
const PRELUDE = `
  const noteAt = (message) => (message[0] === 0x08 ? 2 : 0);
  function noteOf(message) {
    const at = noteAt(message);
    return base64.decode(base64.encode(message.slice(at + 2, at + 2 + message[at + 1])));
  }
  function withNote(note) {
    const text = base64.decodeBytes(base64.encode(note));
    const message = new Uint8Array(text.length + 2);
    message.set([0x12, text.length]);
    message.set(text, 2);
    return message;
  }
`;

/** Adds a script; `hook` is the body of onGrpcMessage. */
async function addScript(hook: string, body: Partial<NewScript> = {}): Promise<Script> {
  const source = `${PRELUDE} function onGrpcMessage(context) { ${hook} }`;
  const { id } = await api<Script>("POST", "/scripts", { name: "of messages", source, ...body });
  return await weir.get<Script>(`/scripts/${id}`);
}

const historyOf = async (script: Script): Promise<ScriptExecution[]> =>
  (await weir.get<ScriptExecution[]>(`/scripts/${script.id}/history?limit=1000`)).toReversed();

async function withClient<T>(
  transport: Transport,
  use: (client: ShopClient) => Promise<T>,
  options: ChannelOptions = {},
): Promise<T> {
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

/** The notes of recorded messages, with their direction; null for trailers. */
async function recordedNotes({ id }: GrpcStream): Promise<(readonly [string, unknown])[]> {
  const frames = await weir.get<GrpcFrame[]>(`/grpc/frames?stream_id=${id}&order=asc&limit=1000`);
  return frames.map(({ direction, decoded }) => [
    direction,
    decoded?.fields.find(({ number }) => number === 2)?.value.value ?? null,
  ]);
}

interface Unary {
  readonly response: Order;
  readonly trailing: unknown;
}

function unary(client: ShopClient, order: Order): Promise<Unary> {
  return new Promise((resolve, reject) => {
    const metadata = new Metadata();
    metadata.set("x-asked", "what");
    let response: Order = {};
    const call = client.get(order, metadata, {}, (error, value) => {
      if (error !== null) return reject(error);
      response = value ?? {};
    });
    call.on("status", (status) => {
      if (status.code === 0) resolve({ response, trailing: status.metadata.get("x-trailing")[0] });
    });
  });
}

const CHANGE = `context.message = withNote(noteOf(context.message) + (context.direction === "send" ? " sent" : " received"));`;

for (const transport of TRANSPORTS) {
  test(`a script changes the request and the response of a unary call over ${transport}`, async () => {
    const script = await addScript(
      `console.log(context.service, context.method, context.stream_id === context.requestId); ${CHANGE}`,
    );
    const { response, trailing } = await withClient(transport, (client) => unary(client, { note: "a" }));
    assert.equal(response.note, "a sent received");
    assert.equal(trailing, "what");
    const call = await theCall();
    assert.deepEqual([call.status_code, call.issues, call.failure], [0, [], null]);
    assert.deepEqual(await recordedNotes(call), [
      ["request", "a sent"],
      ["response", "a sent received"],
      ["response", null],
    ]);
    const [sent, received] = await historyOf(script);
    assert.deepEqual(
      [sent?.hook, sent?.traffic_entry_id, sent?.success, sent?.console, sent?.changes],
      ["on_grpc_message", call.id, true, ["shop.v1.Orders Get true"], ["message 3 to 8 bytes"]],
    );
    assert.deepEqual(received?.changes, ["message 8 to 17 bytes"]);
    const entry = await weir.get<TrafficEntry>(`/traffic/${call.id}`);
    assert.deepEqual(
      entry.trace?.map(({ kind, rule_id: id, phase, changes }) => [kind, id, phase, changes]),
      [
        ["script", script.id, "request", ["changed messages"]],
        ["script", script.id, "response", ["changed messages"]],
      ],
    );
  });

  test(`a script drops one message of a server's stream over ${transport}`, async () => {
    await addScript(
      `return { continue: !(context.direction === "receive" && noteOf(context.message) === "order 2") };`,
    );
    const notes = await withClient(transport, async (client) => {
      const got: string[] = [];
      for await (const order of client.watch({ id: "5" })) got.push((order as Order).note ?? "");
      return got;
    });
    assert.deepEqual(notes, ["order 0", "order 1", "order 3", "order 4"]);
    const call = await theCall();
    assert.deepEqual([call.frames_received, call.status_code, call.issues], [4, 0, []]);
  });

  test(`a delay of some messages keeps the order of all, in both directions over ${transport}`, async () => {
    const script = await addScript(
      `const number = Number(noteOf(context.message).slice(1));
       return number % 3 === 0 ? { delay: 15 } : undefined;`,
    );
    const sent = Array.from({ length: 12 }, (_, at) => `n${at}`);
    const received = await withClient(transport, async (client) => {
      const call = client.talk();
      for (const note of sent) call.write({ note });
      call.end();
      const got: string[] = [];
      for await (const order of call) got.push((order as Order).note ?? "");
      return got;
    });
    assert.deepEqual(
      received,
      sent.map((note) => note.toUpperCase()),
    );
    const executions = await historyOf(script);
    assert.equal(executions.length, 24);
    assert.ok(executions.every(({ success, changes }) => success && changes.length === 0));
  });

  test(`a thousand messages pass a script over ${transport} in order`, async () => {
    await addScript("");
    const notes = await withClient(transport, async (client) => {
      const got: string[] = [];
      for await (const order of client.watch({ id: "1000" })) got.push((order as Order).note ?? "");
      return got;
    });
    assert.deepEqual(
      notes,
      Array.from({ length: 1000 }, (_, at) => `order ${at}`),
    );
    assert.equal((await theCall()).frames_received, 1000);
  });

  test(`a client over ${transport} cancels while a script holds a message`, async () => {
    const script = await addScript(`return { delay: 60000 };`);
    const cancelled = await withClient(transport, async (client) => {
      const call = client.watch({ id: "3" });
      call.resume();
      const failed = once(call, "error") as Promise<[ServiceError]>;
      await waitUntil(async () => (await historyOf(script)).length === 1);
      call.cancel();
      const [error] = await failed;
      return error.code;
    });
    assert.equal(cancelled, 1);
    const call = await theCall();
    assert.notEqual(call.failure, null);
    assert.equal((await historyOf(script)).length, 1);
  });

  test(`calls over ${transport} that no script matches stay untouched`, async () => {
    const script = await addScript(CHANGE, { match_filter: { path_pattern: "/shop.v1.Orders/Watch" } });
    assert.equal(script.problem, null);
    const { response } = await withClient(transport, (client) => unary(client, { note: "a" }));
    assert.equal(response.note, "a");
    const call = await theCall();
    assert.deepEqual(await historyOf(script), []);
    assert.deepEqual((await weir.get<TrafficEntry>(`/traffic/${call.id}`)).trace, []);
    await withClient(transport, async (client) => {
      for await (const _order of client.watch({ id: "1" }));
    });
    // The changed request has no id, so there is no response message.
    assert.equal((await historyOf(script)).length, 1);
  });

  test(`a script sees gzip messages over ${transport} uncompressed, and changed ones are sent without compression`, async () => {
    const script = await addScript(
      `if (context.direction === "send") context.message = withNote("b".repeat(100)); else console.log(context.message.length);`,
    );
    const options = { "grpc.default_compression_algorithm": 2 };
    const { response } = await withClient(transport, (client) => unary(client, { note: "a".repeat(5000) }), options);
    assert.equal(response.note, "b".repeat(100));
    const call = await theCall();
    const frames = await weir.get<GrpcFrame[]>(`/grpc/frames?stream_id=${call.id}&order=asc`);
    assert.deepEqual([frames[0]?.compressed, frames[0]?.size], [false, 102]);
    const [sent, received] = await historyOf(script);
    assert.deepEqual([sent?.changes, received?.console], [["message 5003 to 102 bytes"], ["102"]]);
  });

  test(`an error of the server over ${transport} passes with its details`, async () => {
    await addScript("");
    const error = await withClient(
      transport,
      (client) =>
        new Promise<ServiceError | null>((resolve) => {
          client.fail({ id: "5", note: "why" }, (failure) => resolve(failure));
        }),
    );
    assert.deepEqual([error?.code, error?.details], [5, "no: why"]);
    assert.equal((await theCall()).status_details.length, 1);
  });
}

test("a script that fails lets the message pass as it was", async () => {
  const script = await addScript(`context.message = "text";`);
  const { response } = await withClient("h2c", (client) => unary(client, { note: "a" }));
  assert.equal(response.note, "a");
  const [execution] = await historyOf(script);
  assert.deepEqual([execution?.success, /is no bytes/.test(execution?.error ?? "")], [false, true]);
});
