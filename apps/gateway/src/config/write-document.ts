import { createHash } from "node:crypto";
import { GatewaySettings } from "@headworks/gateway-contract";
import type { ConfigDocument, DocumentInput } from "@headworks/gateway-contract";
import { stringify } from "yaml";
import { mapAnnotated } from "./annotated-fields.ts";
import { documentSchema } from "./read-document.ts";
import { memberSchema, type Schema } from "./schema-shape.ts";
import { isReference, redactedText } from "./secrets.ts";

/** Node has it, TypeScript's library does not know it yet: text that goes into JSON as it is. */
const { rawJSON } = JSON as unknown as { readonly rawJSON: (text: string) => unknown };

/**
 * A document in its one normal form: settings of the gateway under `gateway`, fields in the order of the schema, the
 * keys of maps sorted, sections without content left out. Lists keep their order, values left out stay out.
 */
export function normalDocument(document: DocumentInput | ConfigDocument): DocumentInput {
  const written = document as Readonly<Record<string, unknown>>;
  const gateway: Record<string, unknown> = { ...document.gateway };
  for (const name of Object.keys(GatewaySettings.properties)) {
    if (written[name] !== undefined) gateway[name] = written[name];
  }
  const moved: Record<string, unknown> = { gateway };
  for (const [name, value] of Object.entries(written)) {
    if (!(name in GatewaySettings.properties) && name !== "gateway") moved[name] = value;
  }
  const normal = ordered(documentSchema, moved) as Record<string, unknown>;
  for (const [name, value] of Object.entries(normal)) if (isBlank(value)) delete normal[name];
  return normal;
}

function ordered(schema: Schema, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((member: unknown) => ordered(schema.items ?? {}, member));
  if (typeof value !== "object" || value === null) return value;
  const members = value as Readonly<Record<string, unknown>>;
  const branch = schema.anyOf?.find(({ properties }) => properties?.["type"]?.const === members["type"]) ?? schema;
  const names = Object.keys(members).filter((name) => members[name] !== undefined);
  const order = branch.properties === undefined ? undefined : Object.keys(branch.properties);
  names.sort((a, b) => (order === undefined ? (a < b ? -1 : 1) : order.indexOf(a) - order.indexOf(b)));
  const copy = (order === undefined ? Object.create(null) : {}) as Record<string, unknown>;
  for (const name of names) copy[name] = ordered(memberSchema(schema, value, name) ?? {}, members[name]);
  return copy;
}

function isBlank(value: unknown): boolean {
  if (value === undefined) return true;
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

/** The same with every inline secret replaced by `${redacted:sha256:…}`; references stay as they are. */
export function redactedDocument<T extends DocumentInput | ConfigDocument>(document: T): T {
  return mapAnnotated(documentSchema, document, "x-secret", (text) => (isReference(text) ? text : redactedText(text)));
}

/** A document as YAML 1.2; numbers of 64 bits are exact. Says what it is given: redact it before showing it. */
export function toYaml(document: DocumentInput | ConfigDocument): string {
  return stringify(withoutHoles(document), {
    version: "1.2",
    schema: "core",
    lineWidth: 0,
    aliasDuplicateObjects: false,
  });
}

/** A document as JSON; numbers of 64 bits are exact. `indent` as with `JSON.stringify`. */
export function toJson(document: unknown, indent?: number): string {
  const number = (_: string, value: unknown): unknown => (typeof value === "bigint" ? rawJSON(String(value)) : value);
  return JSON.stringify(document, number, indent);
}

function withoutHoles(document: DocumentInput | ConfigDocument): unknown {
  return Object.fromEntries(Object.entries(document).filter(([, value]) => value !== undefined));
}

/**
 * A number that stands for the content of a document, the same in every process: the first 53 bits of the SHA-256 of
 * its normal form with inline secrets redacted, so that it is exact as a JSON number and tells nothing of them.
 */
export function contentHash(document: DocumentInput | ConfigDocument): number {
  const text = toJson(redactedDocument(normalDocument(document)));
  return Number(createHash("sha256").update(text).digest().readBigUInt64BE() >> 11n);
}

/** A content hash as headers and ETags have it: `0x` and 14 hexadecimal digits. */
export function hashText(hash: number): string {
  return `0x${hash.toString(16).padStart(14, "0")}`;
}
