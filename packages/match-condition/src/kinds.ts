import type { Condition } from "@headworks/capture-contract";
import type { FieldCheck } from "./field-problems.ts";

/** One member of a kind of condition. */
export interface FieldKind {
  readonly check: FieldCheck;
  readonly optional?: true;
  /** `null` says the same as leaving it out. */
  readonly nullIsAbsent?: true;
}

/** A kind of condition: its name as the API shows it, and its members. */
interface Kind {
  readonly type: Condition["type"];
  readonly fields: Readonly<Record<string, FieldKind>>;
}

const pattern = { check: "pattern" } as const;
const name = { check: "name" } as const;
const header = { check: "headerName" } as const;
const value = { check: "text", optional: true, nullIsAbsent: true } as const;
const side = { check: "side", optional: true, nullIsAbsent: true } as const;
const path = { check: "jsonPath" } as const;
const json = { check: "json" } as const;
// The members of these are read by the parser itself.
const nested = { check: "json" } as const;

const KINDS: readonly (Kind & { readonly aliases?: readonly string[] })[] = [
  { type: "all", fields: {} },
  { type: "url_pattern", fields: { pattern } },
  { type: "path_pattern", fields: { pattern } },
  { type: "host", fields: { pattern } },
  { type: "method", fields: { method: { check: "word" } } },
  { type: "scheme", fields: { scheme: { check: "word" } } },
  { type: "port", fields: { port: { check: "port" } } },
  { type: "path_segment", fields: { index: { check: "index" }, value: { check: "text" } } },
  { type: "query_param", fields: { name, value } },
  { type: "query_param_pattern", fields: { name, pattern } },
  { type: "header", fields: { name: header, value, side } },
  { type: "header_pattern", fields: { name: header, pattern, side } },
  { type: "content_type", fields: { pattern, side } },
  { type: "body_pattern", fields: { pattern, side } },
  { type: "json_path", fields: { path, value: { ...json, optional: true }, side } },
  { type: "json_path_pattern", fields: { path, pattern, side } },
  { type: "graph_q_l_operation", aliases: ["graphql_operation"], fields: { operation_name: name } },
  { type: "graph_q_l_type", aliases: ["graphql_type"], fields: { operation_type: { check: "operationType" } } },
  { type: "graph_q_l_variable", aliases: ["graphql_variable"], fields: { name, value: json } },
  { type: "status_code", fields: { range: { check: "statusRange" } } },
  { type: "and", fields: { conditions: nested } },
  { type: "or", fields: { conditions: nested } },
  { type: "not", fields: { condition: nested } },
];

/** Every kind under all its names. A map, so that names every object inherits are no kinds. */
export const FIELDS_OF_KIND: ReadonlyMap<string, Kind> = new Map(
  KINDS.flatMap((kind) => [kind.type, ...(kind.aliases ?? [])].map((known) => [known, kind] as const)),
);
