import assert from "node:assert/strict";
import { test } from "node:test";
import { apiInfo, operations } from "@headworks/capture-contract";
import type { AnyOperations, Operation } from "@headworks/contract-kit";
import fc from "fast-check";
import { pino } from "pino";
import { systemClock } from "#clock.ts";
import { openLogOutput } from "#logging/log-output.ts";
import { defaultDataPaths } from "#settings/data-paths.ts";
import { startProxyRig } from "./proxy-rig.ts";

interface Schema {
  readonly $id?: string;
  readonly $ref?: string;
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean | Schema;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly multipleOf?: number;
  readonly $defs?: Readonly<Record<string, Schema>>;
}

/** Schemas below a schema, to be found by their names. */
function named(schema: Schema, found = new Map<string, Schema>()): Map<string, Schema> {
  for (const [name, inner] of Object.entries(schema.$defs ?? {})) found.set(name, inner);
  if (schema.$id !== undefined) found.set(schema.$id, schema);
  for (const inner of Object.values(schema) as unknown[]) {
    for (const each of Array.isArray(inner) ? (inner as unknown[]) : [inner]) {
      if (typeof each === "object" && each !== null) named(each, found);
    }
  }
  return found;
}

const OWN_TEXTS = ["a", "GET", "localhost", "http://127.0.0.1:1/x", "*", "..", "/x", "{", "(a+)+$", "é😀", "1", "true"];

/** What values are made with. */
interface Known {
  /** Schemas by name. */
  readonly names: ReadonlyMap<string, Schema>;
  /** Ids that something has. */
  readonly ids: readonly string[];
}

/** Values that a schema allows, also at its bounds. */
function valuesOf(schema: Schema, known: Known, depth = 0): fc.Arbitrary<unknown> {
  const { names, ids } = known;
  const inner = (next: Schema, member = ""): fc.Arbitrary<unknown> => {
    const values = valuesOf(next, known, depth + 1);
    if (ids.length === 0 || next.type !== "string" || !/(?:^|_)ids?$/.test(member)) return values;
    return fc.oneof(values, fc.constantFrom(...ids));
  };
  if (schema.$ref !== undefined) {
    const found = names.get(schema.$ref.split("/").at(-1) ?? "");
    assert.ok(found, schema.$ref);
    return inner(found);
  }
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) {
    const flat = choices.filter(({ $ref, type }) => $ref === undefined && type !== "object" && type !== "array");
    const allowed = depth > 4 && flat.length > 0 ? flat : choices.slice(0, depth > 4 ? 1 : choices.length);
    return fc.oneof(...allowed.map((next) => inner(next)));
  }
  const { minimum = 0, maximum = 2 ** 31, minLength = 0, maxLength = 300 } = schema;
  switch (schema.type) {
    case "null":
      return fc.constant(null);
    case "boolean":
      return fc.boolean();
    case "integer":
      return fc.oneof(fc.constantFrom(minimum, maximum), fc.integer({ min: minimum, max: Math.min(maximum, 2 ** 31) }));
    case "number":
      return fc.constantFrom(schema.exclusiveMinimum === undefined ? minimum : maximum, maximum);
    case "string": {
      if (schema.format === "date-time") return fc.constantFrom("2026-01-02T03:04:05.678Z", "1970-01-01T00:00:00Z");
      if (schema.pattern !== undefined) return textsLike(new RegExp(schema.pattern, "u"), minLength, maxLength);
      const own = OWN_TEXTS.filter(({ length }) => length >= minLength && length <= maxLength);
      const any = fc.string({ unit: "binary", minLength, maxLength: Math.min(maxLength, minLength + 20) });
      return fc.oneof(fc.constantFrom(...own, "x".repeat(Math.min(maxLength, 70_000))), any.map(whole));
    }
    case "array": {
      const { minItems = 0, maxItems = 3, items = {} } = schema;
      return fc.array(inner(items), { minLength: minItems, maxLength: Math.max(minItems, Math.min(maxItems, 3)) });
    }
    case "object":
      return objectsOf(schema, inner, depth);
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

/** Half of a surrogate pair is no text in any schema. */
const whole = (text: string): string => text.toWellFormed();

function textsLike(pattern: RegExp, minLength: number, maxLength: number): fc.Arbitrary<string> {
  return fc
    .stringMatching(pattern, { maxLength: Math.min(maxLength, 40) })
    .filter((text) => text.length >= minLength && text.length <= maxLength && text.isWellFormed());
}

function objectsOf(
  schema: Schema,
  inner: (next: Schema, member?: string) => fc.Arbitrary<unknown>,
  depth: number,
): fc.Arbitrary<unknown> {
  const required = new Set(schema.required);
  const free = Object.values(schema.patternProperties ?? {}).at(0) ?? schema.additionalProperties;
  const members = Object.entries(schema.properties ?? {}).filter(([name]) => depth <= 6 || required.has(name));
  const optional = members.map(([name]) => name).filter((name) => !required.has(name));
  // Few at a time: those that contradict each other are refused before anything else is looked at.
  const fixed = fc.subarray(optional, { maxLength: Math.min(3, optional.length) }).chain((chosen) => {
    const there = members.filter(([name]) => required.has(name) || chosen.includes(name));
    return fc.record(Object.fromEntries(there.map(([name, next]) => [name, inner(next, name)])));
  });
  const size = { minKeys: schema.minProperties ?? 0, maxKeys: 3, noNullPrototype: true };
  if (typeof free !== "object") return fixed;
  return fc.tuple(fixed, fc.dictionary(fc.constantFrom("a", "b-1", "X-y"), inner(free), size)).map(([own, others]) => ({
    ...others,
    ...own,
  }));
}

interface Call {
  readonly path: string;
  readonly body?: unknown;
}

function callsOf(operation: Operation, ids: readonly string[]): fc.Arbitrary<Call> {
  const schemas = [operation.params, operation.query, operation.body] as readonly (Schema | undefined)[];
  const names = new Map(schemas.flatMap((schema) => (schema === undefined ? [] : [...named(schema)])));
  const [params, query, body] = schemas.map((schema) =>
    schema === undefined || "upload" in schema ? fc.constant(undefined) : valuesOf(schema, { names, ids }),
  ) as [fc.Arbitrary<unknown>, fc.Arbitrary<unknown>, fc.Arbitrary<unknown>];
  return fc.tuple(params, query, body).map(([given, asked, sent]) => {
    const path = operation.path.replaceAll(/\{(\w+)\}/g, (_all, name: string) =>
      encodeURIComponent(String((given as Record<string, unknown> | undefined)?.[name])),
    );
    const search = Object.entries(asked ?? {}).flatMap(([name, value]) =>
      value === undefined ? [] : [`${name}=${encodeURIComponent(String(value))}`],
    );
    return { path: `${apiInfo.prefix}${path}${search.length === 0 ? "" : `?${search.join("&")}`}`, body: sent };
  });
}

const all = Object.entries(operations as AnyOperations).flatMap(([slice, table]) =>
  Object.entries(table).map(([name, operation]) => ({ name: `${slice}.${name}`, slice, operation })),
);
/** They leave nothing for others to work on. */
const REMOVING = new Set(["traffic.clearTraffic"]);
/** Values that are tried with each operation, twice. */
const RUNS = 4;

test("no operation answers 500 or 501 to what its schema allows", async () => {
  await using rig = await startProxyRig({}, (dataDir) => {
    const logs = openLogOutput({
      path: defaultDataPaths(dataDir).logFile,
      stream: { write: () => 0, flushSync: () => undefined },
      hasColours: false,
      isJson: true,
      hasFile: true,
      clock: systemClock,
      reportProblem: (sentence) => assert.fail(sentence),
    });
    return { log: pino({ base: null }, logs), logs };
  });
  // The latest ids of each slice; those of traffic go with each, since replays, mocks and rules are made from it.
  const ids = new Map<string, string[]>();
  const address = rig.proxy.addresses.api;
  const found: string[] = [];
  for (const path of ["/a", "/b"]) await rig.send({ method: "POST", path, body: "{}" });
  const traffic = (await rig.api<{ id: string }[]>("GET", "/traffic")).map(({ id }) => id);
  const changing = all.filter(({ name, operation }) => operation.method !== "DELETE" && !REMOVING.has(name));
  for (const [index, { name, slice, operation }] of [...changing, ...all].entries()) {
    const known = [...(ids.get(slice) ?? []), ...traffic];
    for (const { path, body } of fc.sample(callsOf(operation, known), { numRuns: RUNS, seed: index })) {
      const response = await fetch(`${address}${path}`, {
        method: operation.method,
        signal: AbortSignal.timeout(10_000),
        headers: { "x-weir-confirm": "true", ...(body === undefined ? {} : { "content-type": "application/json" }) },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      if ([500, 501, 503].includes(response.status)) {
        found.push(
          `${name}: ${operation.method} ${path.slice(0, 300)} ${JSON.stringify(body)?.slice(0, 600)}: ${text}`,
        );
      }
      if (response.ok) {
        const shown = [...text.matchAll(/"id":"([0-9a-f-]{36})"/g)].map(([, id]) => id ?? "");
        ids.set(slice, [...new Set([...shown, ...(ids.get(slice) ?? [])])].slice(0, 4));
      }
    }
  }
  assert.deepEqual(found, []);
});
