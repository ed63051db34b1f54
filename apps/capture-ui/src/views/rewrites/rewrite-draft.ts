import type { Condition, NewRewriteRule, RewriteAction, RewriteRule } from "@headworks/capture-contract";
import { readJson } from "@headworks/json";
import { conditionForRequest, nameForRequest, type RequestLine } from "../../rules/from-entry.ts";

type ActionType = RewriteAction["type"];

export interface ActionField {
  readonly name: string;
  readonly label: string;
  /** `flags`: letters of a pattern; `switch`: on or off; `json`: parsed. */
  readonly kind: "text" | "lines" | "json" | "number" | "flags" | "switch";
  readonly example?: string;
  /** Omitted from the action while empty. */
  readonly optional?: true;
}

interface ActionSpec {
  readonly label: string;
  readonly about: "request" | "response" | "both";
  readonly fields: readonly ActionField[];
}

const PATTERN: readonly ActionField[] = [
  { name: "pattern", label: "Find", kind: "text", example: "regular expression" },
  { name: "replacement", label: "Replace with", kind: "text", example: "$1 is the first group" },
  { name: "flags", label: "Flags", kind: "flags", optional: true },
];
const NAME: ActionField = { name: "name", label: "Name", kind: "text", example: "X-Debug" };
const VALUE: ActionField = { name: "value", label: "Value", kind: "text" };
const APPEND: ActionField = { name: "append", label: "Keep existing values (append)", kind: "switch", optional: true };

export const ACTIONS: Readonly<Record<ActionType, ActionSpec>> = {
  set_header: { label: "Set header", about: "both", fields: [NAME, VALUE, APPEND] },
  remove_header: { label: "Remove header", about: "both", fields: [NAME] },
  header_rewrite: { label: "Replace in header", about: "both", fields: [NAME, ...PATTERN] },
  url_rewrite: { label: "Replace in URL", about: "request", fields: PATTERN },
  map_to_url: {
    label: "Redirect to another server",
    about: "request",
    fields: [{ name: "url", label: "URL", kind: "text", example: "http://127.0.0.1:8080/" }],
  },
  query_param: {
    label: "Set query parameter",
    about: "request",
    fields: [{ ...NAME, example: "debug" }, VALUE, APPEND],
  },
  remove_query_param: {
    label: "Remove query parameter",
    about: "request",
    fields: [{ ...NAME, example: "utm_source" }],
  },
  set_method: {
    label: "Set method",
    about: "request",
    fields: [{ name: "method", label: "Method", kind: "text", example: "PUT" }],
  },
  allow_cors: {
    label: "Allow other origins (CORS)",
    about: "both",
    fields: [
      {
        name: "max_age_secs",
        label: "Preflight cache, seconds",
        kind: "number",
        example: "5",
        optional: true,
      },
    ],
  },
  set_status: {
    label: "Set status",
    about: "response",
    fields: [{ name: "code", label: "Status", kind: "number", example: "503" }],
  },
  body_rewrite: { label: "Replace in body", about: "both", fields: PATTERN },
  set_body: {
    label: "Replace body",
    about: "both",
    fields: [
      { name: "content", label: "Content", kind: "lines" },
      { name: "content_type", label: "Content type", kind: "text", example: "unchanged", optional: true },
      { name: "base64", label: "Content is base64", kind: "switch", optional: true },
    ],
  },
  json_merge: {
    label: "Merge into JSON body",
    about: "both",
    fields: [
      { name: "patch", label: "Members to set; null removes a member", kind: "json", example: '{"debug": true}' },
    ],
  },
  json_patch: {
    label: "Patch JSON body",
    about: "both",
    fields: [
      {
        name: "patch",
        label: "Operations (JSON Patch)",
        kind: "json",
        example: '[{"op": "replace", "path": "/debug", "value": true}]',
      },
    ],
  },
  map_to_file: {
    label: "Respond from file",
    about: "both",
    fields: [
      { name: "path", label: "File or folder", kind: "text", example: "within one of the allowed folders" },
      { name: "prefix", label: "URL path mapped to the folder", kind: "text", example: "/", optional: true },
    ],
  },
};

/** An action in the editor; values as typed. */
export interface ActionDraft {
  readonly key: number;
  readonly type: ActionType;
  readonly values: Readonly<Record<string, string>>;
}

let lastKey = 0;

/** A new action. Switches are `true` or empty. */
export function newAction(type: ActionType = "set_header", values: ActionDraft["values"] = {}): ActionDraft {
  lastKey += 1;
  return { key: lastKey, type, values };
}

/** Changes the type of an action, keeping the values that still apply. */
export function withType(draft: ActionDraft, type: ActionType): ActionDraft {
  const names = ACTIONS[type].fields.map((field) => field.name);
  const values = Object.fromEntries(Object.entries(draft.values).filter(([name]) => names.includes(name)));
  return { ...draft, type, values };
}

function typed(value: unknown, field: ActionField): string {
  if (value === undefined || value === null) return field.kind === "json" && value === null ? "null" : "";
  if (field.kind === "json") return JSON.stringify(value, null, 2);
  if (typeof value === "string") return value;
  return typeof value === "number" ? String(value) : value === true ? "true" : "";
}

export function draftOfAction(action: RewriteAction): ActionDraft {
  const values: Record<string, string> = {};
  for (const field of ACTIONS[action.type].fields) {
    values[field.name] = typed((action as unknown as Record<string, unknown>)[field.name], field);
  }
  return newAction(action.type, values);
}

/** Fields that may be empty: an empty value or replacement is meaningful. */
const MAY_BE_EMPTY = new Set(["value", "replacement", "content"]);

export function actionOf(
  draft: ActionDraft,
): { readonly ok: true; readonly action: RewriteAction } | { readonly ok: false; readonly message: string } {
  const action: Record<string, unknown> = { type: draft.type };
  for (const field of ACTIONS[draft.type].fields) {
    const text = draft.values[field.name] ?? "";
    if (text === "" && field.optional === true) continue;
    if (text === "" && !MAY_BE_EMPTY.has(field.name)) return { ok: false, message: `${field.label} is missing` };
    const value = valueOf(field, text);
    if (value === undefined) return { ok: false, message: `${field.label}: ${WRONG[field.kind] ?? "is invalid"}` };
    action[field.name] = value;
  }
  // All fields of the type are present and typed.
  return { ok: true, action: action as unknown as RewriteAction };
}

const WRONG: Readonly<Partial<Record<ActionField["kind"], string>>> = {
  json: "is not JSON",
  number: "is not a number",
};

function valueOf(field: ActionField, text: string): unknown {
  switch (field.kind) {
    case "switch":
      return text === "true";
    case "number":
      return /^\d{1,9}$/u.test(text.trim()) ? Number(text) : undefined;
    case "json":
      try {
        return readJson(text);
      } catch {
        return undefined;
      }
    case "text":
    case "lines":
    case "flags":
      return text;
  }
}

export function actionWords(action: RewriteAction): string {
  switch (action.type) {
    case "set_header":
      return `${action.name}: ${action.value}`;
    case "remove_header":
      return `without ${action.name}`;
    case "header_rewrite":
      return `${action.name}: ${action.pattern} → ${action.replacement}`;
    case "url_rewrite":
      return `URL: ${action.pattern} → ${action.replacement}`;
    case "body_rewrite":
      return `body: ${action.pattern} → ${action.replacement}`;
    case "query_param":
      return `?${action.name}=${action.value}`;
    case "remove_query_param":
      return `without ?${action.name}`;
    case "map_to_file":
      return `from file ${action.path}`;
    case "map_to_url":
      return `to ${action.url}`;
    case "allow_cors":
      return "CORS for any origin";
    case "set_status":
      return `status ${action.code}`;
    case "set_method":
      return `method ${action.method}`;
    case "set_body":
      return "replace body";
    case "json_patch":
      return `JSON: ${action.patch.map((step) => `${step.op} ${step.path}`).join(", ")}`;
    case "json_merge":
      return `JSON: ${JSON.stringify(action.patch)}`;
  }
}

export interface RewriteDraft {
  readonly name: string;
  readonly condition: Condition;
  readonly direction: RewriteRule["direction"];
  readonly actions: readonly ActionDraft[];
  readonly priority: string;
}

export function newRewrite(): RewriteDraft {
  return { name: "", condition: { type: "all" }, direction: "request", actions: [newAction()], priority: "100" };
}

/** A rule for similar requests. */
export function rewriteFromEntry(request: RequestLine): RewriteDraft {
  return { ...newRewrite(), name: `Rewrite ${nameForRequest(request)}`, condition: conditionForRequest(request) };
}

export function draftOfRule(rule: RewriteRule): RewriteDraft {
  return {
    name: rule.name,
    condition: rule.condition,
    direction: rule.direction,
    actions: rule.rewrites.map(draftOfAction),
    priority: String(rule.priority),
  };
}

/** The rule of a draft, or its problems by step. */
export function ruleOf(
  draft: RewriteDraft,
  condition: Condition | null,
):
  | { readonly ok: true; readonly rule: NewRewriteRule }
  | { readonly ok: false; readonly message: string; readonly problems: ReadonlyMap<number, string> } {
  const problems = new Map<number, string>();
  const rewrites = draft.actions.flatMap((each) => {
    const result = actionOf(each);
    if (result.ok) return [result.action];
    problems.set(each.key, result.message);
    return [];
  });
  const message =
    draft.name.trim() === ""
      ? "Enter a name"
      : condition === null
        ? "Complete the condition"
        : draft.actions.length === 0
          ? "Add a step"
          : !/^-?\d{1,7}$/u.test(draft.priority.trim())
            ? "Priority must be a number"
            : problems.size > 0
              ? "Complete each step"
              : null;
  if (message !== null || condition === null) return { ok: false, message: message ?? "", problems };
  return {
    ok: true,
    rule: {
      name: draft.name.trim(),
      condition,
      direction: draft.direction,
      rewrites,
      priority: Number(draft.priority),
    },
  };
}
