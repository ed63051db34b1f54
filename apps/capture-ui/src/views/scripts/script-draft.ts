import {
  HOOK_FUNCTIONS,
  type NewScript,
  type Script,
  type ScriptFilter,
  type ScriptHook,
  type ScriptTemplate,
} from "@headworks/capture-contract";
import { nameForRequest, type RequestLine } from "../../rules/from-entry.ts";

export const HOOK_LABELS: Readonly<Record<ScriptHook, string>> = {
  on_request: "Request",
  on_response: "Response",
  on_websocket_message: "WebSocket message",
  on_grpc_message: "gRPC message",
  on_traffic_store: "Stored traffic",
  on_session_start: "Session start",
  on_session_end: "Session end",
};

/** Fields of the match filter as typed; empty: any. */
export interface FilterDraft {
  readonly method: string;
  readonly host: string;
  readonly path: string;
  readonly url: string;
}

export interface ScriptDraft {
  readonly name: string;
  readonly description: string;
  readonly source: string;
  /** Null: those whose function the source declares. */
  readonly hooks: readonly ScriptHook[] | null;
  readonly filter: FilterDraft;
  readonly onError: Script["on_error"];
  readonly priority: string;
}

const NO_FILTER: FilterDraft = { method: "", host: "", path: "", url: "" };

const SKELETON = `/** Runs before the request is sent to the server. */
function onRequest(request, context) {
  // request.headers["X-Debug"] = "1";
}
`;

export function newScript(): ScriptDraft {
  return {
    name: "",
    description: "",
    source: SKELETON,
    hooks: null,
    filter: NO_FILTER,
    onError: "stop_chain",
    priority: "100",
  };
}

function filterDraft(filter: ScriptFilter | undefined): FilterDraft {
  return {
    method: filter?.method ?? "",
    host: filter?.host_pattern ?? "",
    path: filter?.path_pattern ?? "",
    url: filter?.url_pattern ?? "",
  };
}

export function draftOfScript(script: Script): ScriptDraft {
  return {
    name: script.name,
    description: script.description ?? "",
    source: script.source,
    hooks: script.hooks,
    filter: filterDraft(script.match_filter),
    onError: script.on_error,
    priority: String(script.priority),
  };
}

export function draftOfTemplate(template: ScriptTemplate): ScriptDraft {
  return {
    name: template.name,
    description: template.description,
    source: template.source,
    hooks: null,
    filter: filterDraft(template.match_filter),
    onError: template.on_error,
    priority: String(template.priority),
  };
}

/** A script for requests with the method, host and path of a captured one. */
export function scriptFromEntry(request: RequestLine): ScriptDraft {
  const at = URL.canParse(request.url) ? new URL(request.url) : null;
  const filter =
    at === null
      ? { ...NO_FILTER, method: request.method, url: request.url }
      : {
          ...NO_FILTER,
          method: request.method,
          host: at.hostname,
          // The pattern covers the query, which differs between similar requests.
          path: at.search === "" ? at.pathname : `${at.pathname}?*`,
        };
  return { ...newScript(), name: `Script ${nameForRequest(request)}`, source: entrySource(request), filter };
}

function entrySource({ method, url }: RequestLine): string {
  // A line end in a URL would end the comment.
  const shown = `${method} ${url}`.replaceAll(/\s/gu, " ").slice(0, 200);
  return `// For requests like ${shown}

/** Runs before the request is sent to the server. */
function onRequest(request, context) {
  // Change the request:
  // request.headers["X-Debug"] = "1";

  // Respond without the server:
  // return { continue: false, response: { statusCode: 204 } };
}

/** Runs before the response is sent to the client. */
function onResponse(request, response, context) {
  // Change the response:
  // const data = response.json();
  // response.setJson(data);
}
`;
}

function filterOf({ method, host, path, url }: FilterDraft): ScriptFilter | null {
  const filter = {
    ...(method.trim() === "" ? {} : { method: method.trim() }),
    ...(host.trim() === "" ? {} : { host_pattern: host.trim() }),
    ...(path.trim() === "" ? {} : { path_pattern: path.trim() }),
    ...(url.trim() === "" ? {} : { url_pattern: url.trim() }),
  };
  return Object.keys(filter).length === 0 ? null : filter;
}

/** The script of a draft, or its problem. */
export function scriptOf(
  draft: ScriptDraft,
): { readonly ok: true; readonly rule: NewScript } | { readonly ok: false; readonly message: string } {
  const message =
    draft.name.trim() === ""
      ? "Enter a name"
      : draft.source.trim() === ""
        ? "Enter a source"
        : !/^-?\d{1,7}$/u.test(draft.priority.trim())
          ? "Priority must be a number"
          : null;
  if (message !== null) return { ok: false, message };
  return {
    ok: true,
    rule: {
      name: draft.name.trim(),
      description: draft.description.trim() === "" ? null : draft.description.trim(),
      source: draft.source,
      ...(draft.hooks === null ? {} : { hooks: [...draft.hooks] }),
      match_filter: filterOf(draft.filter),
      on_error: draft.onError,
      priority: Number(draft.priority),
    },
  };
}

export function hasSameHooks(left: readonly ScriptHook[], right: readonly ScriptHook[]): boolean {
  return left.length === right.length && left.every((hook) => right.includes(hook));
}

/** Short description of the exchanges that a script sees: `GET api.example.com /orders*`. */
export function filterWords(filter: ScriptFilter | undefined): string {
  const { method, host, path, url } = filterDraft(filter);
  const words = [method, host, path, url].filter((word) => word !== "");
  return words.length === 0 ? "All traffic" : words.join(" ");
}

export function hookWords(hooks: readonly ScriptHook[]): string {
  return hooks.length === 0 ? "no hooks" : hooks.map((hook) => HOOK_FUNCTIONS[hook]).join(", ");
}

/** The stored fields of a script, to create it again or copy it. */
export function bodyOfScript(script: Script): NewScript {
  const { name, source, description, hooks, match_filter: filter = null, on_error, enabled, priority } = script;
  return { name, source, description, hooks, match_filter: filter, on_error, enabled, priority };
}
