import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { temporaryDirectory, waitUntil } from "@headworks/testkit";
import { beginSession, openTemporaryStore, testsSharing } from "../../test/shared-rig.ts";
import { openDatabase } from "./database.ts";
import { sampleExchange } from "./read/sample-exchange.ts";
import { NEVER, openRig } from "./store-rig.ts";
import { tlsText } from "./write/entry-record.ts";

const inSession = testsSharing("what one session of a store holds", openTemporaryStore, beginSession);

inSession(
  "a recorded exchange is given back as its row and, with fields, bodies and timings, as its entry",
  async (rig) => {
    const { store } = rig;
    const exchange = sampleExchange({
      spool: store.spool,
      method: "POST",
      host: "api.example.com",
      port: 8443,
      path: "/orders?id=7",
      status: 201,
      requestFields: [
        "Host",
        "api.example.com:8443",
        "Content-Type",
        "application/json; charset=utf-8",
        "X-A",
        "1",
        "x-a",
        "2",
      ],
      responseFields: ["Content-Type", "application/octet-stream", "Set-Cookie", "a=1", "Set-Cookie", "b=2"],
      requestBody: ['{"sum":', "12}"],
      responseBody: [new Uint8Array([0, 255, 1])],
    });
    const seq = store.nextSeq();
    store.record(seq, exchange);
    await store.flush();
    const { rows, total } = await rig.rows();
    assert.equal(total, 1);
    assert.deepEqual(rows[0], JSON.parse(JSON.stringify(store.snapshotOf(seq, exchange))));
    assert.deepEqual(await store.getRow(exchange.id), rows[0]);
    const entry = await rig.entry(exchange.id);
    assert.equal(entry?.request.url, "https://api.example.com:8443/orders?id=7");
    assert.equal(entry.request.body, '{"sum":12}');
    assert.equal(entry.request.content_type, "application/json; charset=utf-8");
    assert.deepEqual(entry.request.headers_list, [
      ["Host", "api.example.com:8443"],
      ["Content-Type", "application/json; charset=utf-8"],
      ["X-A", "1"],
      ["x-a", "2"],
    ]);
    assert.equal(entry.request.headers["X-A"], "1, 2");
    assert.equal(entry.response?.headers["Set-Cookie"], "a=1\nb=2");
    assert.equal(entry.response.body, "base64:AP8B");
    assert.equal(entry.response.body_encoding, "base64");
    assert.equal(entry.response.body_state, "complete");
    assert.equal(entry.response.duration_ms, 12.5);
    assert.deepEqual(entry.timings, rows[0]?.timings);
  },
);

inSession("a text body that begins with the mark of base64 is marked as base64 itself", async (rig) => {
  const { id } = rig.add({ responseBody: ["base64:AAAA"] });
  await rig.store.flush();
  const entry = await rig.entry(id);
  assert.equal(entry?.response?.body, `base64:${Buffer.from("base64:AAAA").toString("base64")}`);
});

test("a long exchange is listed as pending while it runs, and replaced in its position at its end", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const { store } = rig;
  const seq = store.nextSeq();
  const running = sampleExchange({ state: { step: "forwarding" } });
  store.record(seq, running);
  const later = rig.add();
  await store.flush();
  assert.deepEqual(
    (await rig.rows()).rows.map((row) => [row.id, row.state]),
    [
      [later.id, "complete"],
      [running.id, "pending"],
    ],
  );
  assert.equal((await rig.rows({ status_code: "2xx" })).total, 1);
  const finished = sampleExchange({ id: running.id, spool: store.spool, responseBody: ["done"] });
  store.record(seq, finished);
  await store.flush();
  assert.deepEqual(
    (await rig.rows()).rows.map((row) => [row.id, row.state]),
    [
      [later.id, "complete"],
      [running.id, "complete"],
    ],
  );
  assert.equal((await rig.rows({ status_code: "2xx" })).total, 2, "a kept result follows the change");
  assert.equal((await rig.entry(running.id))?.response?.body, "done");
  assert.equal(store.status().entryCount, 2);
  assert.equal(store.status().totalSizeBytes, 4);
});

test("an entry deleted while it ran does not reappear at its end", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const { store } = rig;
  const seq = store.nextSeq();
  const running = sampleExchange({ state: { step: "forwarding" } });
  store.record(seq, running);
  assert.deepEqual(await store.deleteEntries([running.id, "unknown"]), [running.id]);
  store.record(seq, sampleExchange({ id: running.id, spool: store.spool, responseBody: ["x".repeat(300_000)] }));
  await store.flush();
  assert.equal((await rig.rows()).total, 0);
  assert.equal(store.status().totalSizeBytes, 0);
  await waitUntil(() => readdirSync(directory.file("bodies")).length === 0);
});

test("entries of a process that ended become failed when the store opens again", async () => {
  await using directory = await temporaryDirectory();
  const running = sampleExchange({ state: { step: "forwarding" } });
  {
    await using rig = await openRig(directory.path);
    rig.store.record(rig.store.nextSeq(), running);
    rig.add();
  }
  await using rig = await openRig(directory.path);
  const entry = await rig.entry(running.id);
  assert.equal(entry?.state, "failed");
  assert.equal(entry.failure?.message, "Interrupted by a restart");
  assert.equal((await rig.rows({ q: "state:pending" })).total, 0);
  assert.ok(rig.store.nextSeq() > 2, "numbers go on");
});

test("a large body is stored in a private file, read by range, and removed with its entry", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const piece = Buffer.from("0123456789".repeat(10_000));
  const { id } = rig.add({ responseBody: Array.from({ length: 12 }, () => piece) });
  await rig.store.flush();
  const [name = ""] = readdirSync(directory.file("bodies"));
  assert.equal(statSync(directory.file("bodies", name)).mode & 0o777, 0o600);
  assert.equal(statSync(directory.file("bodies")).mode & 0o777, 0o700);
  assert.equal(statSync(directory.file("bodies", name)).size, 1_200_000);
  const options = { decoded: false, utf8: false };
  const part = await rig.store.readBody(id, "response", { ...options, start: 999_995, end: 1_000_005 });
  assert.equal(part?.totalBytes, 1_200_000);
  assert.equal(Buffer.from(part.bytes).toString(), "5678901234");
  const rest = await rig.store.readBody(id, "response", { ...options, start: 1_199_999, end: undefined });
  assert.equal(Buffer.from(rest?.bytes ?? []).toString(), "9");
  assert.equal(await rig.store.readBody("unknown", "response", { ...options, start: 0, end: undefined }), undefined);
  assert.deepEqual(await rig.store.deleteEntries([id]), [id]);
  assert.deepEqual(readdirSync(directory.file("bodies")), []);
});

inSession("bodies are cut at the limit and say so", async (rig) => {
  const { id } = rig.add({ responseBody: ["abcdef"], limitBytes: 4 });
  await rig.store.flush();
  const response = (await rig.entry(id))?.response;
  assert.deepEqual(
    [response?.body, response?.body_size, response?.body_stored_size, response?.body_state, response?.truncated],
    ["abcd", 6, 4, "truncated", true],
  );
  assert.equal((await rig.entry(id))?.request.truncated, false);
});

inSession(
  "an encoded body is decoded on request: small ones in the entry, large ones by ranges from a file",
  async (rig) => {
    const text = "wörd ".repeat(600_000);
    const responseFields = ["Content-Type", "text/plain; charset=utf-8", "Content-Encoding", "gzip"];
    const small = rig.add({ responseBody: [gzipSync("hellö")], responseFields });
    const large = rig.add({ responseBody: [gzipSync(text)], responseFields });
    const damaged = rig.add({ responseBody: [gzipSync("hello").subarray(0, 12), "no gzip"], responseFields });
    await rig.store.flush();
    const entry = await rig.store.getEntry(small.id, { includeBodies: true, decompressed: true });
    assert.equal(entry?.response?.body, "hellö");
    assert.equal(entry.response.headers["Content-Encoding"], undefined);
    assert.deepEqual(entry.response.headers_list, [["Content-Type", "text/plain; charset=utf-8"]]);
    const whole = Buffer.from(text);
    for (const [start, end] of [
      [0, 100],
      [2_999_000, 2_999_100],
      [1_000_000, 1_000_100],
    ] as const) {
      const part = await rig.store.readBody(large.id, "response", { decoded: true, utf8: false, start, end });
      assert.equal(part?.totalBytes, whole.length);
      assert.equal(Buffer.compare(part.bytes, whole.subarray(start, end)), 0);
      assert.equal(part.partial, false);
    }
    const kept = await rig.store.getEntry(damaged.id, { includeBodies: true, decompressed: true });
    assert.equal(kept?.response?.headers["Content-Encoding"], "gzip", "what cannot be decoded stays as it was");
    const broken = await rig.store.readBody(damaged.id, "response", {
      decoded: true,
      utf8: false,
      start: 0,
      end: undefined,
    });
    assert.equal(broken?.partial, true);
  },
);

inSession("text in another charset is given as UTF-8 when asked for", async (rig) => {
  const bytes = Buffer.from("gr\xfc\xdfe", "latin1");
  const declared = rig.add({
    responseBody: [bytes],
    responseFields: ["Content-Type", "text/plain; charset=iso-8859-1"],
  });
  const sniffed = rig.add({ responseBody: [bytes], responseFields: ["Content-Type", "text/plain"] });
  await rig.store.flush();
  for (const { id } of [declared, sniffed]) {
    const part = await rig.store.readBody(id, "response", { decoded: true, utf8: true, start: 0, end: undefined });
    assert.equal(Buffer.from(part?.bytes ?? []).toString(), "grüße");
  }
});

test("limits remove the oldest entries, report their ids, and keep running entries", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path, { maxRequests: 5 });
  const { store } = rig;
  const pruned: string[] = [];
  store.on("pruned", (ids) => pruned.push(...ids));
  const running = sampleExchange({ state: { step: "forwarding" } });
  store.record(store.nextSeq(), running);
  const added = Array.from({ length: 20 }, () => rig.add({ responseBody: ["x"] }).id);
  await store.flush();
  assert.deepEqual(
    (await rig.rows()).rows.map((row) => row.id),
    [...added.slice(-4).reverse(), running.id],
  );
  assert.deepEqual(pruned, added.slice(0, 16));
  assert.equal(store.status().entryCount, 5);
  assert.equal(store.status().totalSizeBytes, 4);
  store.setLimits({ maxRequests: 2, maxTotalSizeMb: null, maxBodyBytes: 1 });
  await waitUntil(() => store.status().entryCount === 2);
  assert.equal((await rig.rows()).total, 2);
});

test("the size limit counts the bodies of all sessions and removes the oldest first", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path, { maxTotalSizeMb: 1 });
  const old = await rig.store.createSession("old", null);
  assert.equal(await rig.store.switchSession(old.id), 0);
  for (let index = 0; index < 8; index += 1) rig.add({ responseBody: ["x".repeat(100_000)] });
  const next = await rig.store.createSession("next", null);
  assert.equal(await rig.store.switchSession(next.id), 0);
  for (let index = 0; index < 8; index += 1) rig.add({ responseBody: ["x".repeat(100_000)] });
  await rig.store.flush();
  assert.equal((await rig.store.getSession(old.id))?.request_count, 2);
  assert.equal((await rig.store.getSession(next.id))?.request_count, 8);
});

test("sessions are created, renamed, switched to, cleared and deleted; counts follow", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const { store } = rig;
  const first = store.activeSessionId;
  const kept = rig.add();
  const second = await store.createSession("Second", "about it");
  assert.deepEqual(
    [second.name, second.notes, second.is_current, second.request_count],
    ["Second", "about it", false, 0],
  );
  assert.equal((await store.updateSession(second.id, { name: "Other", tags: ["a"] }))?.name, "Other");
  assert.equal(await store.updateSession("unknown", { name: "x" }), undefined);
  assert.equal(await store.switchSession("unknown"), undefined);
  assert.equal(await store.switchSession(second.id), 0);
  rig.add({ responseBody: ["12345"] });
  await store.flush();
  assert.equal((await store.getSession(first))?.request_count, 1);
  assert.deepEqual(
    (await rig.rows({ session_id: first })).rows.map((row) => row.id),
    [kept.id],
  );
  assert.equal((await rig.rows({ session_id: "unknown" })).total, 0);
  const current = await store.getSession(second.id);
  assert.deepEqual([current?.request_count, current?.total_size_bytes, current?.tags], [1, 5, ["a"]]);
  assert.equal((await store.listSessions())[0]?.id, second.id, "latest updated first");
  assert.equal(await store.deleteSession(second.id), "active");
  assert.equal(await store.deleteSession("unknown"), "unknown");
  assert.equal(await store.deleteSession(first), "deleted");
  assert.equal(await rig.entry(kept.id), undefined);
  await store.clearSession(second.id);
  assert.equal((await rig.rows()).total, 0);
  assert.equal(store.status().totalSizeBytes, 0);
  const after = rig.add();
  await store.flush();
  assert.deepEqual(
    (await rig.rows()).rows.map((row) => row.id),
    [after.id],
  );
});

test("sessions, the active one and counters are the same after a restart", async () => {
  await using directory = await temporaryDirectory();
  let before: unknown;
  {
    await using rig = await openRig(directory.path);
    const session = await rig.store.createSession("Mine", null);
    await rig.store.switchSession(session.id);
    rig.add({ responseBody: ["abc"] });
    await rig.store.flush();
    before = await rig.store.listSessions();
  }
  await using rig = await openRig(directory.path);
  assert.deepEqual(await rig.store.listSessions(), before);
});

test("entries cleared or deleted shortly before a crash do not reappear", async () => {
  await using directory = await temporaryDirectory();
  {
    await using rig = await openRig(directory.path);
    for (let index = 0; index < 3000; index += 1) rig.add();
    await rig.store.flush();
    const next = await rig.store.createSession("next", null);
    const old = rig.store.activeSessionId;
    await rig.store.switchSession(next.id);
    rig.add();
    await rig.store.deleteSession(old);
    await rig.store.clearSession(next.id);
  }
  await using rig = await openRig(directory.path);
  assert.equal((await rig.store.listSessions()).length, 1);
  assert.equal((await rig.rows()).total, 0);
  await waitUntil(() => rowCount(directory.file("traffic.db")) === 0);
});

function rowCount(path: string): number {
  const database = openDatabase(path, { readOnly: true });
  try {
    return Number(
      database
        .prepare("SELECT (SELECT COUNT(*) FROM entry) + (SELECT COUNT(*) FROM head) + (SELECT COUNT(*) FROM body) AS n")
        .get()?.["n"],
    );
  } finally {
    database.close();
  }
}

const ODD_FIELDS: readonly string[][] = [
  [],
  ["A", ""],
  ["A", "", "B", ""],
  ["a", "x: y", "a", ": z", "A", "1"],
  ["A", '"quoted" \\ back', "B", "caf\xe9\xff", "C", "tab\tinside"],
];

test("fields are returned unchanged, whether recorded as lines or as a list", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  for (const fields of ODD_FIELDS) {
    for (const hasFieldLines of [true, false]) {
      const { id } = rig.add({ requestFields: fields, responseFields: fields, hasFieldLines });
      await rig.store.flush();
      const entry = await rig.entry(id);
      const pairs = fields.flatMap((text, at) => (at % 2 === 0 ? [[text, fields[at + 1]]] : []));
      assert.deepEqual(entry?.request.headers_list, pairs, JSON.stringify(fields));
      assert.deepEqual(entry?.response?.headers_list, pairs, JSON.stringify(fields));
      const isJson = !hasFieldLines || fields.length === 0;
      assert.deepEqual(storedForms(directory.file("traffic.db"), id), [isJson, isJson], JSON.stringify(fields));
    }
  }
});

/** Whether request and response fields are stored as JSON. */
function storedForms(path: string, id: string): boolean[] {
  const database = openDatabase(path, { readOnly: true });
  try {
    const row = database
      .prepare("SELECT h.request_fields, h.response_fields FROM head h JOIN entry e ON e.seq = h.seq WHERE e.id = ?")
      .get(id);
    return [row?.["request_fields"], row?.["response_fields"]].map((text) => String(text).startsWith("["));
  } finally {
    database.close();
  }
}

test("TLS facts are returned unchanged, also those stored by an earlier version", async () => {
  await using directory = await temporaryDirectory();
  const facts = {
    client_version: "TLSv1.3",
    client_cipher: "TLS_AES_128_GCM_SHA256",
    sni: "example.com",
    upstream_version: "TLSv1.2",
    upstream_cipher: null,
    upstream_verified: false,
    upstream_subject: "CN=example.com",
    upstream_issuer: null,
    upstream_valid_to: "2027-06-12T20:33:05.000Z",
    upstream_client_certificate: null,
  };
  let id: string;
  {
    await using rig = await openRig(directory.path);
    ({ id } = rig.add());
  }
  for (const stored of [JSON.stringify(facts), tlsText(facts)]) {
    const database = openDatabase(directory.file("traffic.db"));
    database.prepare("UPDATE head SET tls = ?").run(stored);
    database.close();
    await using rig = await openRig(directory.path);
    assert.deepEqual((await rig.entry(id))?.tls, facts, stored);
  }
});

test("a replay stored by an earlier version has no client, and neither has its stream", async () => {
  await using directory = await temporaryDirectory();
  const stored = [
    ["replay:7", -7, null, null],
    // Imported from HAR.
    ["replay:12", null, null, null],
    ["127.0.0.1:50000", 7, "127.0.0.1:50000", 7],
  ] as const;
  const ids: string[] = [];
  {
    await using rig = await openRig(directory.path);
    for (const _ of stored) {
      const exchange = rig.add();
      ids.push(exchange.id);
      rig.store.streams.open(exchange, "sse").end();
    }
    await rig.store.flush();
  }
  const database = openDatabase(directory.file("traffic.db"));
  for (const [index, [address, connection]] of stored.entries()) {
    const id = ids[index] ?? "";
    database.prepare("UPDATE entry SET client_addr = ?, connection_id = ? WHERE id = ?").run(address, connection, id);
    database.prepare("UPDATE stream SET client_addr = ? WHERE id = ?").run(address, id);
  }
  database.exec("PRAGMA user_version = 4");
  database.close();
  await using rig = await openRig(directory.path);
  for (const [index, [, , address, connection]] of stored.entries()) {
    const id = ids[index] ?? "";
    const [entry, stream] = [await rig.entry(id), await rig.store.streams.getStream(id)];
    assert.deepEqual([entry?.client_addr, entry?.connection_id, stream?.clientAddress], [address, connection, address]);
  }
});

inSession("notes are set, cleared, and found", async (rig) => {
  const { id } = rig.add();
  await rig.store.flush();
  assert.equal((await rig.rows({ q: "note:look" })).total, 0);
  assert.equal(await rig.store.setNote(id, "Look here"), true);
  assert.equal((await rig.rows({ q: "note:look" })).rows[0]?.has_note, true);
  assert.equal(await rig.store.setNote(id, null), true);
  assert.equal((await rig.rows({ q: "note:look" })).total, 0);
  assert.equal(await rig.store.setNote("unknown", "x"), false);
});

test("a second store on the same directory is rejected until the first is closed", async () => {
  await using directory = await temporaryDirectory();
  {
    await using _rig = await openRig(directory.path);
    await assert.rejects(openRig(directory.path), {
      name: "DataDirectoryInUseError",
      message: /Another running proxy uses/u,
    });
  }
  await using _again = await openRig(directory.path);
});

test("a database of a newer version is rejected and left unchanged", async () => {
  await using directory = await temporaryDirectory();
  {
    const database = openDatabase(directory.file("traffic.db"));
    database.exec("PRAGMA user_version = 9999");
    database.close();
  }
  const before = readFileSync(directory.file("traffic.db"));
  await assert.rejects(openRig(directory.path), { name: "DatabaseTooNewError", message: /schema version 9999/u });
  assert.deepEqual(readFileSync(directory.file("traffic.db")), before);
});

test("a damaged database is kept under another name, reported, and replaced by a new one", async () => {
  await using directory = await temporaryDirectory();
  {
    await using rig = await openRig(directory.path);
    rig.add();
  }
  writeFileSync(directory.file("traffic.db"), "this is no database ".repeat(2000));
  await using rig = await openRig(directory.path);
  assert.match(rig.alarms.join(), /was damaged. It was kept as .*traffic\.db\.corrupt-/u);
  const { id } = rig.add();
  await rig.store.flush();
  assert.deepEqual(
    (await rig.rows()).rows.map((row) => row.id),
    [id],
  );
  assert.ok(readdirSync(directory.path).some((name) => name.startsWith("traffic.db.corrupt-")));
});

test("unreferenced body files are removed at the start, others stay", async () => {
  await using directory = await temporaryDirectory();
  let id: string;
  {
    await using rig = await openRig(directory.path);
    id = rig.add({ responseBody: ["x".repeat(300_000)] }).id;
    await rig.store.flush();
  }
  writeFileSync(directory.file("bodies", "77.body"), "orphan");
  await using rig = await openRig(directory.path);
  assert.equal(existsSync(directory.file("bodies", "77.body")), false);
  const part = await rig.store.readBody(id, "response", {
    decoded: false,
    utf8: false,
    start: 299_999,
    end: undefined,
  });
  assert.equal(part?.totalBytes, 300_000);
  const next = rig.add({ responseBody: ["y".repeat(300_000)] });
  await rig.store.flush();
  const other = await rig.store.readBody(next.id, "response", { decoded: false, utf8: false, start: 0, end: 1 });
  assert.equal(Buffer.from(other?.bytes ?? []).toString(), "y", "a new body does not take an old one's file");
});

inSession("pages by cursor give every entry once, whatever is recorded meanwhile", async (rig) => {
  const expected = Array.from(
    { length: 25 },
    (_, index) => rig.add({ status: index % 2 === 0 ? 200 : 404 }).id,
  ).reverse();
  await rig.store.flush();
  for (const filter of [{}, { q: "path:items" }, { q: "query:page" }]) {
    const seen: string[] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const { json }: { json: Uint8Array } = await rig.store.listEntries({
        filter,
        limit: 10,
        offset: 0,
        cursor,
        includeBodies: false,
        signal: NEVER,
      });
      const page = JSON.parse(new TextDecoder().decode(json)) as {
        entries: { id: string }[];
        next_cursor: string | null;
      };
      seen.push(...page.entries.map((entry) => entry.id));
      cursor = page.next_cursor;
      rig.add();
      await rig.store.flush();
    }
    assert.deepEqual(
      seen.filter((id) => expected.includes(id)),
      expected,
    );
    assert.equal(new Set(seen).size, seen.length);
  }
  await assert.rejects(
    rig.store.listEntries({ filter: {}, limit: 1, offset: 0, cursor: "bm8", includeBodies: false, signal: NEVER }),
    { name: "CursorError" },
  );
});

test("a torn end of the log loses at most the unfinished commits", async () => {
  await using directory = await temporaryDirectory();
  const ids: string[] = [];
  {
    await using rig = await openRig(directory.path);
    for (let round = 0; round < 5; round += 1) {
      ids.push(rig.add().id);
      await rig.store.flush();
    }
    // Simulates a kill: the log is copied while the store is open and restored after its close.
    writeFileSync(directory.file("copy-wal"), readFileSync(directory.file("traffic.db-wal")));
    writeFileSync(directory.file("copy-db"), readFileSync(directory.file("traffic.db")));
  }
  const wal = readFileSync(directory.file("copy-wal"));
  for (const cut of [1, 100, 5000, wal.length - 10]) {
    writeFileSync(directory.file("traffic.db"), readFileSync(directory.file("copy-db")));
    writeFileSync(directory.file("traffic.db-wal"), wal);
    truncateSync(directory.file("traffic.db-wal"), Math.max(0, wal.length - cut));
    await using rig = await openRig(directory.path);
    const found = (await rig.rows({}, { order: "asc" })).rows.map((row) => row.id);
    assert.deepEqual(found, ids.slice(0, found.length), `cut by ${cut}`);
    assert.equal(rig.alarms.length, 0);
    const { id } = rig.add();
    await rig.store.flush();
    assert.ok(await rig.entry(id));
  }
});

inSession("questions are withdrawn by their signal", async (rig) => {
  for (let index = 0; index < 2000; index += 1) rig.add({ responseBody: ["some text ".repeat(100)] });
  await rig.store.flush();
  const controller = new AbortController();
  const questions = [
    rig.store.count({ search: "nowhere" }, controller.signal),
    rig.store.latestRows(100, { search: "nowhere" }, controller.signal),
  ];
  controller.abort();
  for (const question of questions) await assert.rejects(question, { name: "AbortError" });
  await assert.rejects(rig.store.count({}, AbortSignal.abort()), { name: "AbortError" });
  assert.equal(await rig.store.count({ search: "nowhere" }, NEVER), 0, "a withdrawn scan does not spoil the next");
  assert.equal(await rig.store.count({ search: "some text" }, NEVER), 2000);
});
