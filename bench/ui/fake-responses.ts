import type { BlockEntry } from "@headworks/capture-contract";
import { fakeConfigFields, fakeHealth, fakeSetup } from "./fake-settings.ts";
import type { FakeState } from "./fake-state.ts";

/** The response to an API call. */
export interface Response {
  readonly status: number;
  readonly body?: unknown;
}
/** 200 with a body. */
export const ok = (body: unknown): Response => ({ status: 200, body });

/** Calls other than traffic; undefined for unknown ones. */
export function otherResponse(
  state: FakeState,
  path: string,
  method: string,
  json: () => Record<string, unknown>,
): Response | undefined {
  const at = new Date().toISOString();
  if (path === "/capture/toggle") {
    state.recording = typeof json()["enabled"] === "boolean" ? json()["enabled"] === true : !state.recording;
    state.broadcast({ type: "Changed", data: { topic: "capture" } });
  }
  if (path === "/capture" || path === "/capture/toggle") {
    return ok({ capture_enabled: state.recording, mode: state.recording ? "recording" : "passthrough" });
  }
  if (path === "/capture/stats") {
    const count = state.store.rows.length;
    return ok({
      entry_count: count,
      max_entries: count > 10_000 ? 200_000 : 10_000,
      total_size_bytes: 12_400_000,
      max_total_size_bytes: 0,
      max_body_size: 20_971_520,
      capture_enabled: state.recording,
      capture_request_bodies: true,
      capture_response_bodies: true,
      ignored_domains: state.config.ignored_domains,
      store_size_bytes: 333_447_168,
      bodies_not_stored: 0,
      entries_lost: 0,
      storage_ok: true,
      storage_problem: null,
    });
  }
  if (path === "/config") {
    if (method === "PATCH") {
      Object.assign(state.config, json());
      state.broadcast({ type: "Changed", data: { topic: "config" } });
    }
    return ok(state.config);
  }
  if (path === "/config/fields") return ok(fakeConfigFields(state.config));
  if (path === "/health/detailed") return ok(fakeHealth());
  if (path === "/cert/setup") return ok(fakeSetup());
  if (path === "/cert/info") {
    return ok({
      subject: "CN=Weir CA",
      fingerprint_sha256:
        "AB:CD:EF:01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF:01:23:45:67:89",
      serial: "01",
      not_before: at,
      not_after: "2036-11-21T00:00:00.000Z",
      expires_soon: false,
      path: "/home/me/.weir/ca.pem",
      imported: false,
    });
  }
  if (path === "/cert/test") {
    return ok({
      ok: true,
      steps: [
        { name: "Connect to the proxy", ok: true, detail: "127.0.0.1:8888" },
        { name: "TLS with our certificate", ok: true, detail: "TLSv1.3" },
      ],
    });
  }
  if (path === "/sessions" && method === "POST") {
    const name = json()["name"];
    state.sessions = [
      ...state.sessions,
      {
        id: crypto.randomUUID(),
        name: typeof name === "string" ? name : null,
        created_at: at,
        updated_at: at,
        request_count: 0,
        total_size_bytes: 0,
        is_current: false,
        notes: null,
        tags: [],
      },
    ];
    return ok(state.sessions.at(-1));
  }
  if (path === "/sessions") return ok(state.sessions);
  return sessionResponse(state, path, method, json) ?? ruleResponse(state, path, method, json, at);
}

function sessionResponse(
  state: FakeState,
  path: string,
  method: string,
  json: () => Record<string, unknown>,
): Response | undefined {
  const [, id, verb] = /^\/sessions\/([^/]+)(?:\/(switch))?$/u.exec(path) ?? [];
  if (id === undefined) return undefined;
  if (verb === "switch") {
    state.sessions = state.sessions.map((session) => ({ ...session, is_current: session.id === id }));
  } else if (method === "PATCH") {
    state.sessions = state.sessions.map((session) => (session.id === id ? { ...session, ...json() } : session));
  } else if (method === "DELETE") state.sessions = state.sessions.filter((session) => session.id !== id);
  if (method !== "GET") state.broadcast({ type: "Changed", data: { topic: "sessions" } });
  return verb === "switch"
    ? ok({ success: true })
    : method === "DELETE"
      ? { status: 204 }
      : ok(state.sessions.find((session) => session.id === id));
}

function ruleResponse(
  state: FakeState,
  path: string,
  method: string,
  json: () => Record<string, unknown>,
  at: string,
): Response | undefined {
  if (path === "/focus" && method === "GET") return ok(state.focus);
  if (path === "/focus" && method === "POST") {
    const added = { id: crypto.randomUUID(), pattern: String(json()["pattern"]), created_at: at };
    state.focus.push(added);
    state.broadcast({ type: "Changed", data: { topic: "focus" } });
    return { status: 201, body: added };
  }
  if (path.startsWith("/focus") && method === "DELETE") {
    const id = path.slice("/focus/".length);
    state.focus.splice(0, state.focus.length, ...(id === "" ? [] : state.focus.filter((host) => host.id !== id)));
    state.broadcast({ type: "Changed", data: { topic: "focus" } });
    return { status: 204 };
  }
  if (path === "/blocklist" && method === "GET") return ok(state.blocklist);
  if (path === "/blocklist/stats") {
    return ok({
      total: state.blocklist.length,
      enabled: state.blocklist.filter((entry) => entry.enabled).length,
      disabled: 0,
      total_hits: 0,
    });
  }
  if (path === "/blocklist" && method === "POST") {
    const entry: BlockEntry = {
      id: crypto.randomUUID(),
      pattern: String(json()["pattern"]),
      note: null,
      enabled: true,
      hit_count: 0,
      status_code: 403,
      response_body: "",
      content_type: "text/plain",
      created_at: at,
      updated_at: at,
      device_id: null,
    };
    state.blocklist.push(entry);
    return { status: 201, body: { id: entry.id } };
  }
  const [, id, verb] = /^\/blocklist\/([^/]+)(?:\/(toggle))?$/u.exec(path) ?? [];
  const index = state.blocklist.findIndex((entry) => entry.id === id);
  const entry = state.blocklist[index];
  if (entry === undefined) return undefined;
  if (method === "DELETE") state.blocklist.splice(index, 1);
  else if (verb === "toggle") state.blocklist[index] = { ...entry, enabled: !entry.enabled };
  else if (method === "PUT") state.blocklist[index] = { ...entry, ...(json() as Partial<BlockEntry>) };
  return method === "DELETE"
    ? { status: 204 }
    : ok(verb === "toggle" ? { id, enabled: !entry.enabled } : state.blocklist[index]);
}
