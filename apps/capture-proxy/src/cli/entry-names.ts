import { trafficOperations } from "@headworks/capture-contract";
import type { Operation } from "@headworks/contract-kit";
import { type ApiAddress, callJson } from "./api-connection.ts";
import { CommandFailure, EXIT } from "./invocation.ts";
import type { InputProperty } from "./schema-options.ts";

/** The names of an entry, for the help of commands. */
export const ENTRY_NAMES = "Id, number in the # column (107 or #107), `last`, or the beginning or end of an id";
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** A part of an id that is worth looking for; digits alone are a number. */
const PART = /^(?=.*[a-f-])[0-9a-f-]{4,35}$/i;
/** Candidates that are named when a part fits several. */
const SHOWN_CANDIDATES = 5;

interface EntrySchema {
  readonly "x-entry-id"?: boolean;
  readonly items?: EntrySchema;
  readonly anyOf?: readonly EntrySchema[];
}

interface Row {
  readonly id: string;
  readonly seq: number;
  readonly method: string;
  readonly url: string;
}

/**
 * The id of an entry of the active session, given by any of its names. A complete id, and a text in none of these forms,
 * is returned unchanged. Throws {@link CommandFailure} for a name of no entry, or of several.
 */
export async function entryId(address: ApiAddress, name: string): Promise<string> {
  const number = /^#?([0-9]{1,15})$/.exec(name)?.[1];
  if (name === "last") return only(name, await rows(address, {}, 1));
  if (number !== undefined) return only(name, await rows(address, { q: `seq:${number}` }, 1));
  if (UUID.test(name)) return name.toLowerCase();
  if (!PART.test(name)) return name;
  const part = name.toLowerCase();
  return only(name, await rows(address, { q: `id:${part}* OR id:*${part}` }, SHOWN_CANDIDATES + 1));
}

/** Resolves the value of a property, or each item of a list, if its schema marks it as an entry's id. */
export async function withEntryIds(address: ApiAddress, property: InputProperty, value: unknown): Promise<unknown> {
  if (!namesEntries(property.schema)) return value;
  if (Array.isArray(value)) return await Promise.all(value.map(async (each) => await entryId(address, String(each))));
  return typeof value === "string" ? await entryId(address, value) : value;
}

/** Path parameters by name, with other names of entries resolved to ids. */
export async function paramsWithEntryIds(
  address: ApiAddress,
  operation: Operation,
  params: Readonly<Record<string, string>>,
): Promise<Record<string, string>> {
  const { properties = {} } = (operation.params ?? {}) as { readonly properties?: Record<string, EntrySchema> };
  const pairs = Object.entries(params).map(async ([name, value]) => {
    return [name, namesEntries(properties[name] ?? {}) ? await entryId(address, value) : value] as const;
  });
  return Object.fromEntries(await Promise.all(pairs));
}

/** Whether the operation's `{id}` is that of an entry. */
export function takesEntry(operation: Operation): boolean {
  const { properties = {} } = (operation.params ?? {}) as { readonly properties?: Record<string, EntrySchema> };
  return namesEntries(properties["id"] ?? {});
}

function namesEntries(schema: EntrySchema): boolean {
  return (
    schema["x-entry-id"] === true ||
    [schema.items, ...(schema.anyOf ?? [])].some((part) => part?.["x-entry-id"] === true)
  );
}

async function rows(
  address: ApiAddress,
  query: Readonly<Record<string, string>>,
  limit: number,
): Promise<readonly Row[]> {
  const { value } = await callJson(address, trafficOperations.listTrafficRows, {
    query: { ...query, sort: "seq", order: "desc", limit: String(limit) },
  });
  return (value as { readonly rows: readonly Row[] }).rows;
}

function only(name: string, found: readonly Row[]): string {
  const [first, ...others] = found;
  if (first === undefined) {
    throw new CommandFailure(
      EXIT.failure,
      name === "last" ? "The session has no entries" : `There is no entry ${name}`,
    );
  }
  if (others.length === 0) return first.id;
  const shown = found.slice(0, SHOWN_CANDIDATES).map(({ id, seq, method, url }) => `  #${seq} ${id} ${method} ${url}`);
  const more = found.length > SHOWN_CANDIDATES ? ", and more" : "";
  throw new CommandFailure(EXIT.failure, `${name} matches several entries${more}:\n${shown.join("\n")}`);
}
