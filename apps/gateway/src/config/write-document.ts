import { createHash, randomUUID } from "node:crypto";
import { stringify } from "yaml";
import { type ConfigDocument, type DocumentInput, GatewaySettings } from "@headworks/gateway-contract";
import { mapAnnotated } from "./annotated-fields.ts";
import { documentSchema } from "./read-document.ts";
import { chosenBranch, memberSchema, type Schema } from "./schema-shape.ts";
import { isReference, redactedText } from "./secrets.ts";

/** Available in Node but not yet in TypeScript's library: embeds raw text in JSON. */
const { rawJSON } = JSON as unknown as { readonly rawJSON: (text: string) => unknown };

/**
 * Normalizes a document: gateway settings under `gateway`, fields in schema order, map keys sorted, empty sections
 * omitted. Lists keep their order; omitted values stay omitted.
 */
export function normalDocument(document: DocumentInput | ConfigDocument): DocumentInput {
  const written = document as Readonly<Record<string, unknown>>;
  const gateway: Record<string, unknown> = { ...document.gateway };
  for (const name of Object.keys(GatewaySettings.properties)) {
    if (written[name] !== undefined) gateway[name] = written[name];
  }
  const moved: Record<string, unknown> = { gateway };
  for (const [name, value] of Object.entries(written)) {
    if (!Object.hasOwn(GatewaySettings.properties, name) && name !== "gateway") put(moved, name, value);
  }
  const normal = ordered(documentSchema, moved) as Record<string, unknown>;
  for (const [name, value] of Object.entries(normal)) if (isBlank(value)) delete normal[name];
  return normal;
}

function ordered(schema: Schema, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((member: unknown) => ordered(schema.items ?? {}, member));
  if (typeof value !== "object" || value === null) return value;
  const members = value as Readonly<Record<string, unknown>>;
  const branch = chosenBranch(schema.anyOf ?? [], members["type"]) ?? schema;
  const copy = (branch.properties === undefined ? Object.create(null) : {}) as Record<string, unknown>;
  for (const name of namesInOrder(branch, members)) {
    const member = members[name];
    if (member !== undefined) put(copy, name, ordered(memberSchema(branch, value, name) ?? {}, member));
  }
  return copy;
}

/** Defines a member; plain assignment of `__proto__` would set the prototype. */
function put(members: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== "__proto__") members[name] = value;
  else Object.defineProperty(members, name, { value, writable: true, enumerable: true, configurable: true });
}

/** Field names in schema order after unknown ones; map keys sorted. */
function namesInOrder(schema: Schema, members: Readonly<Record<string, unknown>>): readonly string[] {
  const { properties } = schema;
  if (properties === undefined) return Object.keys(members).sort();
  const known = fieldNames(properties);
  const unknown = Object.keys(members).filter((name) => !Object.hasOwn(properties, name));
  return unknown.length === 0 ? known : [...unknown, ...known];
}

const namesOfFields = new WeakMap<object, readonly string[]>();

function fieldNames(properties: NonNullable<Schema["properties"]>): readonly string[] {
  let names = namesOfFields.get(properties);
  if (names === undefined) namesOfFields.set(properties, (names = Object.keys(properties)));
  return names;
}

function isBlank(value: unknown): boolean {
  if (value === undefined) return true;
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

/** Replaces inline secrets with `${redacted:sha256:…}`; references stay. */
export function redactedDocument<T extends DocumentInput | ConfigDocument>(document: T): T {
  return mapAnnotated(documentSchema, document, "x-secret", (text) => (isReference(text) ? text : redactedText(text)));
}

/** Formats a document as YAML 1.2 with exact 64-bit numbers. Does not redact. */
export function toYaml(document: DocumentInput | ConfigDocument): string {
  return stringify(withoutHoles(document), {
    version: "1.2",
    schema: "core",
    lineWidth: 0,
    aliasDuplicateObjects: false,
  });
}

/** Formats a document as JSON with exact 64-bit numbers; `indent` as in `JSON.stringify`. */
export function toJson(document: unknown, indent?: number): string {
  const number = (_: string, value: unknown): unknown => (typeof value === "bigint" ? rawJSON(String(value)) : value);
  return JSON.stringify(document, number, indent);
}

function withoutHoles(document: DocumentInput | ConfigDocument): unknown {
  return Object.fromEntries(Object.entries(document).filter(([, value]) => value !== undefined));
}

/**
 * Content hash of a document: the first 53 bits of the SHA-256 of its redacted normal form, so that it is an exact JSON
 * number, reveals no secrets and is equal in all processes.
 */
export function contentHash(document: DocumentInput | ConfigDocument): number {
  return contentHashOfNormal(normalDocument(document));
}

/** {@link contentHash} of a document already in normal form. */
export function contentHashOfNormal(normal: DocumentInput): number {
  const text = toJson(redactedDocument(normal));
  return Number(createHash("sha256").update(text).digest().readBigUInt64BE() >> 11n);
}

/** A content hash for headers and ETags: `0x` and 14 hexadecimal digits. */
export function hashText(hash: number): string {
  return `0x${hash.toString(16).padStart(14, "0")}`;
}

/** A document without inline secrets, for callers that may edit but not read them. */
interface MaskedDocument {
  /** Unguessable marks replace the secrets. */
  readonly document: DocumentInput;
  /** Restores secrets where they are allowed; elsewhere a mark becomes the redacted form. */
  restored(made: unknown): unknown;
}

export function maskSecrets(document: DocumentInput): MaskedDocument {
  const prefix = `secret ${randomUUID()} `;
  const secrets = new Map<string, string>();
  const masked = mapAnnotated(documentSchema, document, "x-secret", (text) => {
    if (isReference(text)) return text;
    const mark = `${prefix}${secrets.size}`;
    secrets.set(mark, text);
    return mark;
  });
  const redacted = (value: unknown): unknown => {
    if (typeof value === "string") {
      const secret = secrets.get(value);
      return secret === undefined ? value : redactedText(secret);
    }
    if (Array.isArray(value)) return value.map(redacted);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, redacted(member)]));
  };
  return {
    document: masked,
    restored: (made) => {
      if (secrets.size === 0) return made;
      return redacted(mapAnnotated(documentSchema, made, "x-secret", (text) => secrets.get(text) ?? text));
    },
  };
}
