import { randomUUID } from "node:crypto";
import type {
  BreakpointUpdate,
  Condition,
  NewBreakpoint,
  PauseAll,
  PausedItem,
  PausedRequest,
  PausedResponse,
  breakpointsOperations,
} from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { fieldValue, type RawFields } from "@headworks/http1";
import { parseRuleCondition } from "@headworks/match-condition";
import { notFound, validationError } from "#api/api-error.ts";
import type { BodyCapture } from "#exchange/body.ts";
import { exchangeUrl, type RequestMessage, type ResponseMessage } from "#exchange/exchange.ts";
import { CONTINUE, type Verdict } from "#exchange/phases.ts";
import { fieldPairs, joinedFields } from "#exchange/shown-message.ts";
import type { HitCounter } from "#rules/rule-table.ts";
import type { Clock } from "#slice.ts";
import {
  type BreakpointsStore,
  newBreakpoint,
  showBreakpoint,
  type StoredBreakpoint,
  updatedBreakpoint,
} from "./breakpoint-rule.ts";
import { parseDecision } from "./decision.ts";
import { editableBody, type EditableBody } from "./editable-body.ts";
import { prepare, type PreparedDecision } from "./message-draft.ts";
import { leaveTrace, PAUSE_ALL, type PauseAllSwitch, type Paused, type PausedExchanges } from "./paused-exchanges.ts";

export interface BreakpointsOperationsParts {
  readonly store: BreakpointsStore;
  readonly hits: HitCounter;
  readonly paused: PausedExchanges;
  readonly pauseAll: PauseAllSwitch;
  readonly clock: Clock;
  readonly bodyLimitBytes: () => number;
  /** Recompiles the stored rules and notifies clients. */
  readonly onChange: () => void;
}

type All = Handlers<typeof breakpointsOperations>;
type RuleOperation =
  | "listBreakpoints"
  | "createBreakpoint"
  | "getBreakpoint"
  | "updateBreakpoint"
  | "deleteBreakpoint"
  | "toggleBreakpoint";

export function createBreakpointsOperations(parts: BreakpointsOperationsParts): All {
  return { ...ruleOperations(parts), ...pausedOperations(parts) };
}

const DEFAULT_LIMIT = 100;
const DEFAULT_HOLD_SECS = 60;

function ruleOperations({ store, hits, clock, onChange }: BreakpointsOperationsParts): Pick<All, RuleOperation> {
  const find = (id: string): StoredBreakpoint => store.find(id) ?? notFound("breakpoint", id);
  const replace = (rule: StoredBreakpoint): StoredBreakpoint => {
    if (!store.update(rule)) return notFound("breakpoint", rule.id);
    onChange();
    return rule;
  };
  const show = (rule: StoredBreakpoint) => showBreakpoint(rule, hits.pending(rule.id));
  return {
    listBreakpoints: ({ query }) => {
      const rules = store.list().reverse();
      const { offset = 0, limit = DEFAULT_LIMIT } = query;
      const headers = { "x-total-count": String(rules.length) };
      return { status: 200, headers, body: rules.slice(offset, offset + limit).map(show) };
    },
    createBreakpoint: ({ body }) => {
      const rule = newBreakpoint(randomUUID(), body, writtenCondition(body), clock.now());
      store.insert(rule);
      onChange();
      return { status: 201, body: { id: rule.id } };
    },
    getBreakpoint: ({ params }) => ({ status: 200, body: show(find(params.id)) }),
    updateBreakpoint: ({ params, body }) => {
      const rule = find(params.id);
      return { status: 200, body: show(replace(updatedBreakpoint(rule, body, writtenCondition(body), clock.now()))) };
    },
    deleteBreakpoint: ({ params }) => {
      if (!store.remove(params.id)) return notFound("breakpoint", params.id);
      hits.forget(params.id);
      onChange();
      return { status: 204 };
    },
    toggleBreakpoint: ({ params, body }) => {
      const rule = find(params.id);
      const enabled = body?.enabled ?? !rule.enabled;
      if (enabled !== rule.enabled) replace({ ...rule, enabled, updatedAtMs: clock.now() });
      return { status: 200, body: { id: rule.id, enabled } };
    },
  };
}

function writtenCondition(body: NewBreakpoint | BreakpointUpdate): Condition {
  const parsed = parseRuleCondition(body, "body");
  if (!parsed.ok) throw validationError(parsed.issues);
  return parsed.condition;
}

function pausedOperations(parts: BreakpointsOperationsParts): Omit<All, RuleOperation> {
  const { paused, pauseAll, clock, bodyLimitBytes } = parts;
  const shown = (withBodies: boolean, position: number) => ({
    withBodies,
    position,
    bodyLimitBytes: bodyLimitBytes(),
  });
  const showPauseAll = (): PauseAll => ({ ...pauseAll.shown(), paused_count: paused.count });
  return {
    listPausedItems: async ({ query }) => {
      const withBodies = query.include_bodies === "true";
      const items = paused.list().map((item, index) => showPaused(item, shown(withBodies, index + 1)));
      return { status: 200, body: (await Promise.all(items)).reverse() };
    },
    getPausedItem: async ({ params }) => {
      const item = paused.find(params.id) ?? notFound("paused item", params.id);
      return { status: 200, body: await showPaused(item, shown(true, paused.positionOf(item.id))) };
    },
    resumePausedItem: async ({ params, body }) => {
      const decision = parseDecision(body);
      const item = paused.find(params.id) ?? notFound("paused item", params.id);
      const prepared = await prepare(item, decision, { bodyLimitBytes: bodyLimitBytes() });
      // Another decision may have ended the pause meanwhile.
      const decide = paused.take(item.id) ?? notFound("paused item", params.id);
      const carryOut = (): void => decide(verdictOf(item, prepared));
      if (prepared.delayMs === 0) carryOut();
      else clock.after(prepared.delayMs, carryOut);
      return { status: 200, body: { id: item.id, action: decision.action } };
    },
    holdPausedItem: ({ params, body }) => {
      const item = paused.hold(params.id, (body?.seconds ?? DEFAULT_HOLD_SECS) * 1000);
      if (item === undefined) return notFound("paused item", params.id);
      const deadline = item.deadlineMs === undefined ? null : new Date(item.deadlineMs).toISOString();
      return { status: 200, body: { id: item.id, deadline } };
    },
    getPauseAll: () => ({ status: 200, body: showPauseAll() }),
    pauseAll: ({ body }) => {
      pauseAll.set(body ?? {});
      return { status: 200, body: showPauseAll() };
    },
    resumeAll: ({ body }) => ({ status: 200, body: { resumed_count: resumeAll(parts, body ?? {}) } }),
  };
}

/** The exchange may have failed during the delay of its decision. */
function verdictOf({ exchange }: Paused, prepared: PreparedDecision): Verdict {
  return exchange.state.step === "paused" ? prepared.carryOut() : CONTINUE;
}

function resumeAll(
  { store, paused, pauseAll, clock, onChange }: BreakpointsOperationsParts,
  { rule_id: ruleId, disable = false }: { rule_id?: string; disable?: boolean },
): number {
  const items = paused.list().filter(({ rule }) => ruleId === undefined || rule.id === ruleId);
  const rule = ruleId === undefined ? undefined : store.find(ruleId);
  if (ruleId !== undefined && ruleId !== PAUSE_ALL && rule === undefined && items.length === 0) {
    return notFound("breakpoint", ruleId);
  }
  if (ruleId === undefined || (disable && ruleId === PAUSE_ALL)) pauseAll.set({ enabled: false });
  if (disable) {
    const named = rule === undefined ? [] : [rule];
    const concerned = ruleId === undefined ? store.list().filter(({ enabled }) => enabled) : named;
    store.updateAll(concerned.map((one) => ({ ...one, enabled: false, updatedAtMs: clock.now() })));
    onChange();
  }
  for (const item of items) {
    leaveTrace(item, []);
    paused.take(item.id)?.(CONTINUE);
  }
  return items.length;
}

interface ShowOptions {
  readonly position: number;
  readonly withBodies: boolean;
  readonly bodyLimitBytes: number;
}

/** The wire form of a paused exchange; bodies are decoded here and only on request. */
async function showPaused(paused: Paused, options: ShowOptions): Promise<PausedItem> {
  const { exchange, side, rule, deadlineMs } = paused;
  const { request, response } = exchange;
  const held = await heldBody(paused, options);
  const requestBody = side === "request" ? held : await sentBody(exchange.requestBody, request.fields, options);
  return {
    id: paused.id,
    entry_id: exchange.id,
    direction: side,
    request: showRequest(request, requestBody),
    response: side === "response" && response !== undefined ? showResponse(response, held) : null,
    paused_at: new Date(paused.pausedAtMs).toISOString(),
    deadline: deadlineMs === undefined ? null : new Date(deadlineMs).toISOString(),
    position: options.position,
    rule_id: rule.id,
    breakpoint_id: rule.id,
    rule_name: rule.name,
    client_addr: exchange.client.address ?? null,
    modifications: [],
  };
}

async function heldBody({ exchange, side, content }: Paused, options: ShowOptions): Promise<ShownBody> {
  const { sizeBytes } = side === "request" ? exchange.requestBody : exchange.responseBody;
  switch (content?.kind) {
    case undefined:
      return bodyLeftOut(sizeBytes, "receiving");
    case "complete": {
      const { bytes } = content;
      if (bytes.length === 0) return bodyLeftOut(0, "none");
      if (!options.withBodies) return bodyLeftOut(bytes.length, "left_out");
      const message = side === "request" ? exchange.request : exchange.response;
      return showBody(await editableBody(bytes, message?.fields ?? [], options.bodyLimitBytes), bytes.length);
    }
    case "too-large":
      return bodyLeftOut(sizeBytes, "too_large");
    case "stream":
      return bodyLeftOut(sizeBytes, "stream");
    case "gone":
      return bodyLeftOut(sizeBytes, "gone");
  }
}

/** The body of a request already sent, as far as the capture holds it in memory. */
async function sentBody(body: BodyCapture, fields: Readonly<RawFields>, options: ShowOptions): Promise<ShownBody> {
  if (body.sizeBytes === 0) return bodyLeftOut(0, "none");
  if (!options.withBodies || body.state !== "complete" || body.spooled !== undefined) {
    return bodyLeftOut(body.sizeBytes, "left_out");
  }
  const bytes = Buffer.concat(body.pieces);
  return showBody(await editableBody(bytes, fields, options.bodyLimitBytes), bytes.length);
}

type ShownBody = Pick<PausedRequest, "body" | "body_encoding" | "body_size" | "body_state" | "charset">;

function showRequest(request: Readonly<RequestMessage>, body: ShownBody): PausedRequest {
  return {
    method: request.method,
    url: exchangeUrl(request),
    host: request.host,
    path: request.path,
    headers: joinedFields(request.fields),
    headers_list: fieldPairs(request.fields),
    content_type: fieldValue(request.fields, "content-type") ?? null,
    http_version: request.version,
    ...body,
  };
}

function showResponse(response: Readonly<ResponseMessage>, body: ShownBody): PausedResponse {
  return {
    status_code: response.status,
    status_message: response.reason,
    headers: joinedFields(response.fields),
    headers_list: fieldPairs(response.fields),
    content_type: fieldValue(response.fields, "content-type") ?? null,
    http_version: response.version,
    ...body,
  };
}

function bodyLeftOut(sizeBytes: number, state: ShownBody["body_state"]): ShownBody {
  return { body: null, body_encoding: null, body_size: sizeBytes, body_state: state, charset: null };
}

/** A complete body for editing; text that starts with the base64 mark is encoded as base64. */
function showBody({ form, bytes, text }: EditableBody, sizeBytes: number): ShownBody {
  const body_state = form === "coded" ? "coded" : "complete";
  if (text !== undefined && !text.value.startsWith("base64:")) {
    return { body: text.value, body_encoding: "utf8", body_size: sizeBytes, body_state, charset: text.charset };
  }
  const base64 = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
  return { body: `base64:${base64}`, body_encoding: "base64", body_size: sizeBytes, body_state, charset: null };
}
