import assert from "node:assert/strict";
import { copyFileSync, existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { brotliCompressSync, gzipSync, zstdCompressSync } from "node:zlib";
import { formatQuery } from "@headworks/query-language";
import type { Query } from "@headworks/query-language";
import { temporaryDirectory } from "@headworks/testkit";
import fc from "fast-check";
import { openDatabase } from "../database.ts";
import type { SampleOptions } from "../read/sample-exchange.ts";
import { NEVER, openRig } from "../store-rig.ts";
import type { StoreRig } from "../store-rig.ts";
import { TrafficReader } from "../read/traffic-reader.ts";

/** A stored entry as a naive search sees it. */
interface Known {
  readonly url: string;
  readonly lines: readonly string[];
  readonly bodies: readonly string[];
}

interface Part {
  readonly words: readonly string[];
  readonly noiseLength: number;
  readonly form: "plain" | "gzip" | "br" | "zstd" | "latin1" | "image" | "none";
}

const WORDS = [
  "alpha",
  "beta",
  "ΟΔΟΣ",
  "\u{212a}elvin",
  "\u{130}stanbul",
  "日本語テキスト",
  "😀 smile",
  "Straße",
  "a: b",
  '"id": 17',
  "x".repeat(50),
];
const CODINGS = { gzip: gzipSync, br: brotliCompressSync, zstd: zstdCompressSync } as const;

let serial = 0;

/** Without a and e, so that noise never contains a searched word. */
function noise(length: number): string {
  let state = serial;
  let text = "";
  while (text.length < length) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    text += String.fromCharCode(33 + ((state >>> 16) % 90));
  }
  return text.replaceAll(/[ae]/giu, "~");
}

/** An entry with how to record it and its texts. */
function entryOf({ words, noiseLength, form }: Part): { sample: SampleOptions; path: string; known: Known } {
  serial += 1;
  const path = `/n${serial}?${encodeURIComponent(words[0] ?? "")}`;
  const isLatin = form === "latin1";
  const text = `${noise(noiseLength)} ${isLatin ? "größe É" : words.join(" ")} ${noise(noiseLength % 91)}`;
  const type = form === "image" ? "image/png" : isLatin ? "text/plain; charset=iso-8859-1" : "text/plain";
  const fields = ["Content-Type", type, "X-Word", encodeURIComponent(words.at(-1) ?? "none")];
  const bytes = Buffer.from(text, isLatin ? "latin1" : "utf8");
  const isCoded = form === "gzip" || form === "br" || form === "zstd";
  if (isCoded) fields.push("Content-Encoding", form);
  const requestFields = ["Host", "example.com", "X-Serial", `s${serial}`];
  const hasBody = form !== "none";
  const lines = [...pairs(requestFields), ...pairs(fields)];
  return {
    sample: {
      path,
      requestFields,
      responseFields: fields,
      responseBody: hasBody ? [isCoded ? CODINGS[form](bytes) : bytes] : [],
    },
    path,
    known: { url: `https://example.com${path}`, lines, bodies: hasBody && form !== "image" ? [text] : [] },
  };
}

function pairs(fields: readonly string[]): string[] {
  return Array.from({ length: fields.length / 2 }, (_, index) => `${fields[index * 2]}: ${fields[index * 2 + 1]}`);
}

/** A store, a reader with small index segments, and a naive search. */
class Bench {
  readonly known = new Map<string, Known>();
  readonly running: { seq: number; id: string; sample: SampleOptions; path: string; known: Known }[] = [];
  readonly #directory: string;
  #rig: StoreRig | undefined;
  #reader: TrafficReader | undefined;
  #asked = 0;

  constructor(directory: string) {
    this.#directory = directory;
  }

  get rig(): StoreRig {
    assert.ok(this.#rig !== undefined);
    return this.#rig;
  }

  get reader(): TrafficReader {
    assert.ok(this.#reader !== undefined);
    return this.#reader;
  }

  get indexPath(): string {
    return join(this.#directory, "test.index");
  }

  async open(): Promise<void> {
    this.#rig = await openRig(this.#directory);
    this.#reader = this.#openReader();
  }

  #openReader(): TrafficReader {
    return new TrafficReader({
      path: join(this.#directory, "traffic.db"),
      bodiesFolder: join(this.#directory, "bodies"),
      decodedFolder: join(this.#directory, "decoded"),
      index: { path: this.indexPath, firstNewSeq: this.rig.store.nextSeq(), columnsOfSegment: 3 },
    });
  }

  /** Clears records and index but keeps the store, whose start would dominate a property run. */
  async startOver(): Promise<void> {
    const { store } = this.rig;
    const { id: next } = await store.createSession(null, null);
    await store.switchSession(next);
    for (const { id } of await store.listSessions()) if (id !== next) await store.deleteSession(id);
    this.running.length = 0;
    this.known.clear();
    this.#reader?.close();
    rmSync(this.indexPath, { force: true });
    this.#reader = this.#openReader();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async close(): Promise<void> {
    this.#reader?.close();
    this.#reader = undefined;
    await this.#rig?.store.close();
    this.#rig = undefined;
    this.running.length = 0;
  }

  add(part: Part): void {
    const { sample, path, known } = entryOf(part);
    this.rig.add(sample);
    this.known.set(path, known);
  }

  /** Recorded while running: the response is unknown. */
  begin(part: Part): void {
    const { sample, path, known } = entryOf(part);
    const seq = this.rig.store.nextSeq();
    const { id } = this.rig.addAs(seq, { ...sample, state: { step: "forwarding" } });
    this.known.set(path, { url: known.url, lines: known.lines.slice(0, 2), bodies: [] });
    this.running.push({ seq, id, sample, path, known });
  }

  end(place: number): void {
    const [ended] = this.running.splice(place, 1);
    if (ended === undefined) return;
    this.rig.addAs(ended.seq, { ...ended.sample, id: ended.id });
    this.known.set(ended.path, ended.known);
  }

  index(steps: number): void {
    this.reader.index?.noteMissed(1_000_000);
    for (let step = 0; step < steps && this.reader.index?.step(0) === true; step += 1);
  }

  async paths(sessionId: string): Promise<string[]> {
    return (await this.rig.rows({ session_id: sessionId })).rows.map((row) => row.path);
  }

  /** Newest first. */
  async found(sessionId: string, query: Query): Promise<{ paths: string[]; total: number }> {
    // A new set for each query: this reader receives no changes.
    this.#asked += 1;
    const value: Query = {
      kind: "field",
      field: "host",
      key: null,
      test: { kind: "text", mode: "matches", values: [{ kind: "literal", text: `other${this.#asked}` }] },
    };
    const filter = { q: formatQuery({ kind: "and", terms: [query, { kind: "not", term: value }] }) };
    const { rows, total } = await this.reader.rows(
      { op: "rows", scope: this.#scope(sessionId), filter, sort: "seq", order: "desc", offset: 0, limit: 1000 },
      { cancelled: false },
    );
    return { paths: rows.map((row) => row.path), total };
  }

  #scope(id: string): { number: number; id: string; floorSeq: number; entryCount: number } {
    const database = openDatabase(join(this.#directory, "traffic.db"), { readOnly: true });
    const row = database.prepare("SELECT number, floor_seq FROM session WHERE id = ?").get(id);
    database.close();
    return { number: Number(row?.["number"] ?? -1), id, floorSeq: Number(row?.["floor_seq"] ?? 0), entryCount: 0 };
  }
}

function textsOf(known: Known, where: "anywhere" | "body"): readonly string[] {
  return where === "body" ? known.bodies : [known.url, ...known.lines, ...known.bodies];
}

function holds(known: Known, query: Query): boolean {
  switch (query.kind) {
    case "anywhere":
      return textsOf(known, "anywhere").some((text) => hasValue(text, query.value));
    case "field": {
      const { test: asked } = query;
      assert.ok(asked.kind === "text");
      return known.bodies.some((text) => asked.values.some((value) => hasValue(text, value)));
    }
    case "and":
      return query.terms.every((term) => holds(known, term));
    case "or":
      return query.terms.some((term) => holds(known, term));
    case "not":
      return !holds(known, query.term);
    default:
      return assert.fail(query.kind);
  }
}

function hasValue(text: string, value: (Query & { kind: "anywhere" })["value"]): boolean {
  const folded = text.toLowerCase();
  if (value.kind === "literal") return folded.includes(value.text.toLowerCase());
  assert.ok(value.kind === "wildcard");
  let at = 0;
  return value.parts.every((part) => {
    const place = folded.indexOf(part.toLowerCase(), at);
    at = place + part.length;
    return place !== -1;
  });
}

/** A searched substring of a stored text. */
interface Cut {
  readonly entry: number;
  readonly text: number;
  readonly at: number;
  readonly length: number;
  readonly isUpper: boolean;
}

function cutOut(bench: Bench, { entry, text, at, length, isUpper }: Cut): string {
  const entries = [...bench.known.values()];
  const known = entries[entry % Math.max(1, entries.length)];
  const texts = known === undefined ? ["nothing there"] : textsOf(known, "anywhere");
  const whole = texts[text % texts.length] ?? "";
  const from = at % Math.max(1, whole.length - 2);
  const needle = whole.slice(from, from + length).trim() || "page";
  return isUpper ? needle.toUpperCase() : needle;
}

const literal = (text: string): Query => ({ kind: "anywhere", value: { kind: "literal", text } });
const inBody = (...texts: string[]): Query => ({
  kind: "field",
  field: "body",
  key: null,
  test: { kind: "text", mode: "matches", values: texts.map((text) => ({ kind: "literal", text })) },
});

async function compare(bench: Bench, left: string, right: string): Promise<void> {
  const queries: Query[] = [
    literal(left),
    inBody(left),
    inBody(left, right),
    { kind: "and", terms: [literal(left), literal(right)] },
    { kind: "or", terms: [literal(left), inBody(right)] },
    { kind: "not", term: literal(left) },
    { kind: "and", terms: [{ kind: "not", term: literal(left) }, literal(right)] },
  ];
  for (const session of await bench.rig.store.listSessions()) {
    const all = await bench.paths(session.id);
    for (const query of queries) {
      const expected = all.filter((path) => holds(bench.known.get(path) ?? assert.fail(path), query));
      const { paths, total } = await bench.found(session.id, query);
      assert.deepEqual(paths, expected, formatQuery(query));
      assert.equal(total, expected.length, formatQuery(query));
    }
  }
}

const part: fc.Arbitrary<Part> = fc.record({
  words: fc.array(fc.constantFrom(...WORDS), { maxLength: 6 }),
  noiseLength: fc.constantFrom(0, 0, 5, 300, 9000, 30_000),
  form: fc.constantFrom("plain", "plain", "gzip", "br", "zstd", "latin1", "image", "none"),
});
const cut: fc.Arbitrary<Cut> = fc.record({
  entry: fc.nat(),
  text: fc.nat(),
  at: fc.nat(),
  length: fc.constantFrom(1, 2, 3, 4, 6, 12, 40, 200),
  isUpper: fc.boolean(),
});
const action = fc.oneof(
  { weight: 6, arbitrary: fc.array(part, { maxLength: 20 }).map((parts) => ({ kind: "add" as const, parts })) },
  { weight: 2, arbitrary: part.map((value) => ({ kind: "begin" as const, value })) },
  { weight: 2, arbitrary: fc.nat(3).map((place) => ({ kind: "end" as const, place })) },
  { weight: 2, arbitrary: fc.nat(20).map((place) => ({ kind: "delete" as const, place })) },
  {
    weight: 1,
    arbitrary: fc.constantFrom("clear", "session", "import", "restart", "trim", "dropDead").map((kind) => ({ kind })),
  },
  { weight: 4, arbitrary: fc.constantFrom(1, 3, 1000).map((steps) => ({ kind: "index" as const, steps })) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("look" as const), left: cut, right: cut }) },
);
type Action = typeof action extends fc.Arbitrary<infer T> ? T : never;

async function perform(bench: Bench, step: Action): Promise<void> {
  const { store } = bench.rig;
  if ("parts" in step) for (const value of step.parts) bench.add(value);
  else if ("value" in step) bench.begin(step.value);
  else if (step.kind === "end" && "place" in step) bench.end(step.place);
  await store.flush();
  if (step.kind === "delete" && "place" in step) {
    const id = (await bench.rig.rows()).rows[step.place]?.id;
    if (id !== undefined) await store.deleteEntries([id]);
  } else if (step.kind === "clear") await store.clearSession(store.activeSessionId);
  else if (step.kind === "session") await store.switchSession((await store.createSession("next", null)).id);
  else if (step.kind === "import") await importAgain(bench);
  else if (step.kind === "trim") {
    store.setLimits({ maxRequests: 10, maxTotalSizeMb: null, maxBodyBytes: 20_971_520 });
    bench.add({ words: ["beta"], noiseLength: 0, form: "plain" });
    await store.flush();
    store.setLimits({ maxRequests: 0, maxTotalSizeMb: null, maxBodyBytes: 20_971_520 });
  } else if (step.kind === "dropDead") {
    bench.reader.index?.noteRemoved(1_000_000, false);
    bench.index(1);
  } else if (step.kind === "restart") {
    await bench.close();
    await bench.open();
  } else if ("steps" in step) bench.index(step.steps);
  else if ("left" in step) await compare(bench, cutOut(bench, step.left), cutOut(bench, step.right));
}

/** An entry exported while running is imported unchanged. */
async function importAgain(bench: Bench): Promise<void> {
  const { store } = bench.rig;
  for (const { path, sample, id, seq, known } of bench.running.splice(0)) {
    bench.rig.addAs(seq, { ...sample, id });
    bench.known.set(path, known);
  }
  await store.flush();
  const document = await store.exportSession(store.activeSessionId, NEVER);
  assert.ok(document !== undefined);
  const options = { sessionName: "again", switchSession: false, signal: NEVER, onProgress: () => undefined };
  await store.importSession(document.chunks, options);
}

test(
  "whatever is indexed and whatever happened since, a search finds what a naive one finds",
  { timeout: 300_000 },
  async () => {
    await using directory = await temporaryDirectory();
    await using bench = new Bench(directory.path);
    await bench.open();
    await fc.assert(
      fc.asyncProperty(fc.array(action, { minLength: 5, maxLength: 30 }), cut, cut, async (actions, left, right) => {
        await bench.startOver();
        for (const step of actions) await perform(bench, step);
        bench.index(1000);
        await compare(bench, cutOut(bench, left), cutOut(bench, right));
      }),
      { numRuns: 20 },
    );
  },
);

test("the index finds field text in Latin-1 and UTF-8", async () => {
  await using directory = await temporaryDirectory();
  await using bench = new Bench(directory.path);
  await bench.open();
  for (let index = 0; index < 30; index += 1) bench.add({ words: ["alpha"], noiseLength: 9000, form: "plain" });
  for (const value of ["Übergröße", Buffer.from("ÜBERgröße").toString("latin1")]) {
    bench.rig.add({ requestFields: ["X-Word", value] });
  }
  await bench.rig.store.flush();
  const session = bench.rig.store.activeSessionId;
  assert.equal((await bench.found(session, literal("übergrö"))).total, 2);
  bench.index(1000);
  assert.equal((await bench.found(session, literal("übergrö"))).total, 2);
});

test("entry numbers reused since an earlier run do not count as indexed", async () => {
  await using directory = await temporaryDirectory();
  await using bench = new Bench(directory.path);
  await bench.open();
  for (let index = 0; index < 30; index += 1) bench.add({ words: ["alpha"], noiseLength: 9000, form: "plain" });
  await bench.rig.store.flush();
  bench.index(1000);
  assert.equal((await bench.found(bench.rig.store.activeSessionId, literal("alpha"))).total, 30);
  const ids = (await bench.rig.rows()).rows.map((row) => row.id);
  await bench.rig.store.deleteEntries(ids.slice(0, 20));
  await bench.close();
  await bench.open();
  for (let index = 0; index < 20; index += 1) bench.add({ words: ["beta"], noiseLength: 9000, form: "plain" });
  await bench.rig.store.flush();
  assert.equal((await bench.found(bench.rig.store.activeSessionId, literal("beta"))).total, 20);
});

test("an index file that is damaged, or of another store, is rebuilt", async () => {
  await using directory = await temporaryDirectory();
  await using bench = new Bench(directory.path);
  const restart = async (change: () => void): Promise<void> => {
    await bench.close();
    change();
    await bench.open();
    const { activeSessionId } = bench.rig.store;
    for (let round = 0; round < 2; round += 1) {
      assert.equal((await bench.found(activeSessionId, literal("alpha"))).total, 40);
      assert.equal((await bench.found(activeSessionId, literal("nowhere"))).total, 0);
      bench.index(1000);
      assert.ok(existsSync(bench.indexPath));
    }
  };
  await bench.open();
  for (let index = 0; index < 40; index += 1) bench.add({ words: ["alpha"], noiseLength: 9000, form: "plain" });
  await bench.rig.store.flush();
  bench.index(1000);
  await restart(() => writeFileSync(bench.indexPath, "this is no database"));
  const inside = (sql: string) => () => {
    const database = openDatabase(bench.indexPath);
    database.exec(sql);
    database.close();
  };
  await restart(inside("UPDATE segment SET marks = zeroblob(length(marks))"));
  await restart(inside("UPDATE segment SET seqs = x'00'"));
  await restart(inside("DELETE FROM slice"));
  await restart(inside("PRAGMA user_version = 1000"));
});

test("an index of other entries with the same numbers is discarded", async () => {
  await using directory = await temporaryDirectory();
  const filled = async (folder: string, word: string): Promise<Bench> => {
    const bench = new Bench(directory.file(folder));
    await bench.open();
    for (let index = 0; index < 40; index += 1) bench.add({ words: [word], noiseLength: 9000, form: "plain" });
    await bench.rig.store.flush();
    bench.index(1000);
    await bench.close();
    return bench;
  };
  const other = await filled("other", "alpha");
  await using bench = await filled("own", "beta");
  copyFileSync(other.indexPath, bench.indexPath);
  await bench.open();
  for (const [word, total] of [
    ["alpha", 0],
    ["beta", 40],
  ] as const) {
    assert.equal((await bench.found(bench.rig.store.activeSessionId, literal(word))).total, total, word);
  }
});

test("an unreadable body does not count as empty", async () => {
  await using directory = await temporaryDirectory();
  await using bench = new Bench(directory.path);
  await bench.open();
  for (let index = 0; index < 5; index += 1) bench.add({ words: ["beta"], noiseLength: 100, form: "plain" });
  await bench.rig.store.flush();
  bench.index(1000);
  const body = Buffer.from(`${"padding ".repeat(50_000)}alpha`);
  bench.rig.add({ path: "/large", responseBody: [body] });
  await bench.rig.store.flush();
  const { bodies } = bench.reader;
  const read = bodies.read.bind(bodies);
  bodies.read = () => undefined;
  bench.index(1000);
  bodies.read = read;
  const { paths } = await bench.found(bench.rig.store.activeSessionId, literal("alpha"));
  assert.deepEqual(paths, ["/large"]);
});

test("searching starts indexing, and results stay correct while entries are added and removed", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  for (let index = 0; index < 9000; index += 1) {
    rig.add({ path: `/p${index}`, responseBody: [index % 100 === 0 ? "a needle in it" : "hay"] });
  }
  await rig.store.flush();
  const total = async (search: string): Promise<number> => (await rig.rows({ search })).total;
  assert.equal(await total("needle"), 90);
  const path = join(directory.path, "traffic.db.index");
  const segments = (): number => {
    if (!existsSync(path)) return 0;
    const database = openDatabase(path, { readOnly: true });
    try {
      return Number(database.prepare("SELECT COUNT(*) AS count FROM segment").get()?.["count"]);
    } catch {
      return 0;
    } finally {
      database.close();
    }
  };
  while (segments() === 0) await sleep(20);
  assert.equal(await total("NEEDLE IN"), 90);
  assert.equal(await total("nowhere"), 0);
  rig.add({ responseBody: ["another needle"] });
  await rig.store.flush();
  assert.equal(await total("needle"), 91);
  assert.equal(await total("needle in"), 90);
  const { rows } = await rig.rows({ search: "needle in" });
  await rig.store.deleteEntries(rows.slice(0, 40).map((row) => row.id));
  assert.equal(await total("needle in"), 50);
  assert.equal(await total("a needle"), 50);
  await rig.store.clearSession(rig.store.activeSessionId);
  assert.equal(await total("needle"), 0);
  assert.deepEqual(rig.alarms, []);
});
