import type { ReplayModifications, SavedRequest, WrittenRequest } from "@headworks/capture-contract";
import {
  bodyDraft,
  type BodyDraft,
  draftBytes,
  type HeaderDraft,
  headerDrafts,
  headersList,
  markedBody,
} from "../../rules/message-draft.ts";

export interface RequestDraft {
  readonly name: string;
  readonly collection: string;
  readonly method: string;
  readonly url: string;
  readonly headers: readonly HeaderDraft[];
  readonly body: BodyDraft;
}

export function newRequest(): RequestDraft {
  return { name: "", collection: "", method: "GET", url: "", headers: [], body: { encoding: "utf8", text: "" } };
}

export function draftOfSaved({ name, collection, request }: SavedRequest): RequestDraft {
  return {
    name: name ?? "",
    collection: collection ?? "",
    method: request.method,
    url: request.url,
    headers: headerDrafts(request.headers_list),
    body: bodyDraft(request.body, request.body_encoding),
  };
}

/** The validation error of a draft, or null. Variables may occur anywhere, so only the start of the URL is checked. */
export function requestProblem(draft: RequestDraft): string | null {
  if (!/^https?:\/\/./iu.test(draft.url.trim()) && !draft.url.trim().startsWith("{{")) {
    return "The URL must begin with http:// or https://";
  }
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/u.test(draft.method.trim())) return "The method must be a single word";
  return draftBytes(draft.body) === null ? "The body is not valid base64" : null;
}

export function requestOf(draft: RequestDraft): WrittenRequest {
  const isEmpty = draft.body.text === "";
  return {
    method: draft.method.trim(),
    url: draft.url.trim(),
    headers_list: headersList(draft.headers),
    body: isEmpty ? null : markedBody(draft.body),
    ...(isEmpty || draft.body.encoding === "base64" ? {} : { body_encoding: "utf8" as const }),
  };
}

/** Name and collection in the form of the API. */
export function aboutOf(draft: RequestDraft): { readonly name: string | null; readonly collection: string | null } {
  const text = (value: string): string | null => (value.trim() === "" ? null : value.trim());
  return { name: text(draft.name), collection: text(draft.collection) };
}

/** Whether two drafts send the same request. */
export function isSameRequest(left: RequestDraft, right: RequestDraft): boolean {
  return JSON.stringify(requestOf(left)) === JSON.stringify(requestOf(right));
}

function byName(list: readonly (readonly [string, string])[]): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, string[]>();
  for (const [name, value] of list) {
    const key = name.toLowerCase();
    names.set(key, [...(names.get(key) ?? []), value]);
  }
  return names;
}

/** Modifications of the saved request that yield the draft, or null if they cannot express it. */
export function modificationsOf(saved: RequestDraft, draft: RequestDraft): ReplayModifications | null {
  const before = byName(headersList(saved.headers));
  const after = byName(headersList(draft.headers));
  const headers: Record<string, string> = {};
  for (const [name, values] of after) {
    if (JSON.stringify(before.get(name)) === JSON.stringify(values)) continue;
    const [value] = values;
    if (values.length !== 1 || value === undefined) return null;
    headers[name] = value;
  }
  const removed = [...before.keys()].filter((name) => !after.has(name));
  const isBodyChanged = markedBody(saved.body) !== markedBody(draft.body);
  // Text that begins with the mark would be read as base64.
  if (isBodyChanged && draft.body.encoding === "utf8" && draft.body.text.startsWith("base64:")) return null;
  return {
    ...(saved.url === draft.url ? {} : { url: draft.url.trim() }),
    ...(saved.method === draft.method ? {} : { method: draft.method.trim() }),
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    ...(removed.length === 0 ? {} : { remove_headers: removed }),
    ...(isBodyChanged ? { body: markedBody(draft.body) } : {}),
  };
}

/** Names in `{{name}}` of URL, headers and body that need a value; names with a dollar sign are generated. */
export function variablesIn(draft: RequestDraft): readonly string[] {
  const text = [draft.url, ...headersList(draft.headers).flat(), draft.body.encoding === "utf8" ? draft.body.text : ""];
  const found = text.join("\n").matchAll(/\{\{\s*([A-Za-z_][A-Za-z0-9_.-]{0,63})\s*\}\}/gu);
  return [...new Set([...found].flatMap((match) => match[1] ?? []))];
}
