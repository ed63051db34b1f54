import type { Condition, MockRule, NewMock, TrafficEntry } from "@headworks/capture-contract";
import { conditionForRequest, nameForRequest } from "../../rules/from-entry.ts";
import { headerDrafts } from "../../rules/message-draft.ts";
import {
  configOf,
  draftOfConfig,
  mockFields,
  newResponse,
  type ConfigDraft,
  type ResponseDraft,
} from "./response-draft.ts";

/** A mock in the editor; numbers as typed. */
export interface MockDraft {
  readonly name: string;
  readonly description: string;
  readonly tags: string;
  readonly collectionId: string | null;
  readonly condition: Condition;
  readonly config: ConfigDraft;
  readonly priority: string;
  readonly expires: "never" | "hits" | "time" | "date";
  readonly expiresValue: string;
  readonly schema: string;
}

export function newMock(collectionId: string | null = null): MockDraft {
  return {
    name: "",
    description: "",
    tags: "",
    collectionId,
    condition: { type: "path_pattern", pattern: "" },
    config: { kind: "single", responses: [newResponse()], otherwise: newResponse(), cycle: true },
    priority: "100",
    expires: "never",
    expiresValue: "",
    schema: "",
  };
}

/** A mock that repeats an entry's response for similar requests; `body` is the decoded response body. */
export function mockFromEntry(entry: TrafficEntry, body: ResponseDraft["body"]): MockDraft {
  const { request, response } = entry;
  const responseDraft: ResponseDraft = {
    ...newResponse(),
    status: String(response?.status_code ?? 200),
    headers: headerDrafts(mockFields(response?.headers_list ?? [])),
    body,
  };
  const draft = newMock();
  return {
    ...draft,
    name: nameForRequest(request),
    condition: conditionForRequest(request),
    config: { ...draft.config, responses: [responseDraft] },
  };
}

export function draftOfMock(rule: MockRule): MockDraft {
  return {
    name: rule.name,
    description: rule.description ?? "",
    tags: rule.tags.join(", "),
    collectionId: rule.collection_id,
    condition: rule.condition,
    config: draftOfConfig(rule.response_config),
    priority: String(rule.priority),
    ...expirationText(rule.expiration),
    schema: rule.response_schema ?? "",
  };
}

function expirationText(expiration: MockRule["expiration"]): Pick<MockDraft, "expires" | "expiresValue"> {
  switch (expiration?.type) {
    case "hit_count":
      return { expires: "hits", expiresValue: String(expiration.max_hits) };
    case "duration":
      return { expires: "time", expiresValue: String(expiration.duration_secs) };
    case "date_time":
      return { expires: "date", expiresValue: expiration.expires_at };
    case undefined:
      return { expires: "never", expiresValue: "" };
  }
}

function expirationOf({ expires, expiresValue }: MockDraft): MockRule["expiration"] | "wrong" {
  const text = expiresValue.trim();
  switch (expires) {
    case "never":
      return null;
    case "hits":
      return /^[1-9]\d{0,8}$/u.test(text) ? { type: "hit_count", max_hits: Number(text) } : "wrong";
    case "time":
      return /^[1-9]\d{0,8}$/u.test(text) ? { type: "duration", duration_secs: Number(text) } : "wrong";
    case "date": {
      const at = Date.parse(text);
      return Number.isNaN(at) ? "wrong" : { type: "date_time", expires_at: new Date(at).toISOString() };
    }
  }
}

/** The rule of a draft, or its problems. */
export function mockOf(
  draft: MockDraft,
  condition: Condition | null,
): { readonly ok: true; readonly rule: NewMock } | { readonly ok: false; readonly message: string } {
  const config = configOf(draft.config);
  const expiration = expirationOf(draft);
  if (draft.name.trim() === "") return { ok: false, message: "Enter a name" };
  if (condition === null) return { ok: false, message: "Complete the condition" };
  if (!config.ok) return config;
  if (expiration === "wrong") return { ok: false, message: "Enter a valid expiry" };
  if (!/^-?\d{1,7}$/u.test(draft.priority.trim())) return { ok: false, message: "Priority must be a number" };
  return {
    ok: true,
    rule: {
      name: draft.name.trim(),
      description: draft.description.trim() === "" ? null : draft.description.trim(),
      tags: draft.tags
        .split(",")
        .map((tag) => tag.trim())
        .filter((tag) => tag !== ""),
      collection_id: draft.collectionId,
      condition,
      response_config: config.config,
      priority: Number(draft.priority),
      expiration,
      response_schema: draft.schema.trim() === "" ? null : draft.schema,
    },
  };
}
