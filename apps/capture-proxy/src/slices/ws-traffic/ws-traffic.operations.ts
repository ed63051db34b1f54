import { randomUUID } from "node:crypto";
import type { NewWsRule, WsPayload, WsRuleUpdate, wsTrafficOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { isSendableCloseCode, OPCODES } from "@headworks/websocket";
import { ApiError, notFound, validationError } from "#api/api-error.ts";
import type { HitCounter, RuleTable } from "#rules/rule-table.ts";
import type { Clock, SliceHost } from "#slice.ts";
import type { StoredFrame, StreamRow, StreamStore } from "#storage/streams/stream-store.ts";
import { shownConnection, shownMessage, shownPayload } from "./shown-message.ts";
import { newWsRule, showWsRule, type StoredWsRule, updatedWsRule, wsRuleIssues } from "./ws-rule.ts";
import type { PausedMessages, WsTrafficInterceptor } from "./ws-traffic.interceptor.ts";

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/u;
const MAX_CONTROL_BYTES = 125;

/** A close frame starts with a code of two bytes. */
const MAX_REASON_BYTES = MAX_CONTROL_BYTES - 2;

/** Bounds of joining fragmented messages: frames per message, and messages per response. */
const JOINED_FRAMES = 1000;
const JOINED_MESSAGES = 50;

export interface WsTrafficOperationsParts extends RuleHandlersParts {
  readonly host: Pick<SliceHost, "streams" | "store">;
  readonly interceptor: WsTrafficInterceptor;
  readonly paused: PausedMessages;
}

export function createWsTrafficOperations(parts: WsTrafficOperationsParts): Handlers<typeof wsTrafficOperations> {
  const { host, interceptor, paused } = parts;
  const { streams } = host;
  const show = (row: StreamRow) => shownConnection(row, interceptor.control(row.id) !== undefined);
  const found = async (id: string): Promise<StreamRow> => {
    const row = await streams.getStream(id);
    return row?.kind === "websocket" ? row : notFound("connection", id);
  };
  return {
    ...createRuleHandlers(parts),
    ...createMessageHandlers({ interceptor, paused, found }),
    listWsConnections: async ({ query, signal }) => {
      const { session_id: session = host.store.activeSessionId, limit = 100, offset = 0 } = query;
      const sessionId = session === "all" ? undefined : session;
      const page = await streams.listStreams({ kind: "websocket", sessionId, limit, offset }, signal);
      return { status: 200, headers: countedAs(page.total), body: page.streams.map(show) };
    },
    getWsConnection: async ({ params }) => ({ status: 200, body: show(await found(params.id)) }),
    listWsMessages: async ({ query, signal }) => {
      const { connection_id: streamId, direction, message_type: type, search, limit = 100, offset = 0 } = query;
      const filter = { kind: "websocket", streamId, direction, type, limit, offset, order: "asc" } as const;
      const page = await streams.listFrames({ ...filter, search: search === "" ? undefined : search }, signal);
      const joined = await joinedPayloads(streams, page.frames);
      const body = page.frames.map((frame) => shownMessage(frame, joined.get(frame)));
      return { status: 200, headers: countedAs(page.total), body };
    },
    clearWsTraffic: async () => {
      await streams.clear("websocket");
      return { status: 204 };
    },
    getWsStats: async () => {
      const stats = await streams.stats("websocket");
      return {
        status: 200,
        body: {
          connections: stats.streams,
          open_connections: stats.openStreams,
          messages_sent: stats.framesSent,
          messages_received: stats.framesReceived,
          messages_stored: stats.framesStored,
          messages_not_stored: stats.framesNotStored,
          bytes_sent: stats.bytesSent,
          bytes_received: stats.bytesReceived,
          stored_bytes: stats.storedBytes,
          by_type: { ...stats.byType },
          paused: paused.size,
        },
      };
    },
  };
}

/** The joined payload for each frame that ends a fragmented message. */
async function joinedPayloads(
  streams: StreamStore,
  frames: readonly StoredFrame[],
): Promise<ReadonlyMap<StoredFrame, WsPayload>> {
  const joined = new Map<StoredFrame, WsPayload>();
  for (const last of frames) {
    if (last.opcode !== OPCODES.continuation || !last.isFinal || joined.size >= JOINED_MESSAGES) continue;
    const { streamId, direction, ordinal } = last;
    const afterOrdinal = Math.max(0, ordinal - JOINED_FRAMES);
    const { frames: before } = await streams.listFrames({
      streamId,
      direction,
      afterOrdinal,
      limit: JOINED_FRAMES,
      offset: 0,
      order: "asc",
    });
    const parts: StoredFrame[] = [];
    for (const frame of before.filter((one) => one.ordinal <= ordinal && one.effect === null).reverse()) {
      if (frame.opcode > OPCODES.binary) continue;
      parts.unshift(frame);
      if (frame.opcode !== OPCODES.continuation) break;
    }
    const [first] = parts;
    if (first === undefined || first.opcode === OPCODES.continuation) continue;
    const sizeBytes = parts.reduce((sum, part) => sum + part.sizeBytes, 0);
    joined.set(last, shownPayload(Buffer.concat(parts.map(({ payload }) => payload)), sizeBytes, first.type));
  }
  return joined;
}

function countedAs(total: number): Readonly<Record<string, string>> {
  return { "x-total-count": String(total) };
}

interface RuleHandlersParts {
  readonly store: RuleTable<StoredWsRule>;
  readonly hits: HitCounter;
  readonly clock: Clock;
  readonly onChange: () => void;
}

type RuleOperations = Pick<
  Handlers<typeof wsTrafficOperations>,
  "listWsRules" | "createWsRule" | "getWsRule" | "updateWsRule" | "deleteWsRule" | "toggleWsRule"
>;

function createRuleHandlers({ store, hits, clock, onChange }: RuleHandlersParts): RuleOperations {
  const find = (id: string): StoredWsRule => store.find(id) ?? notFound("message rule", id);
  const replace = (rule: StoredWsRule): StoredWsRule => {
    if (!store.update(rule)) return notFound("message rule", rule.id);
    onChange();
    return rule;
  };
  const show = (rule: StoredWsRule) => showWsRule(rule, hits.pending(rule.id));
  return {
    listWsRules: ({ query: { offset = 0, limit = 100 } }) => {
      const rules = store.list().reverse();
      const headers = { "x-total-count": String(rules.length) };
      return { status: 200, headers, body: rules.slice(offset, offset + limit).map(show) };
    },
    createWsRule: ({ body }) => {
      check(body);
      const rule = newWsRule(randomUUID(), body, clock.now());
      store.insert(rule);
      onChange();
      return { status: 201, body: { id: rule.id } };
    },
    getWsRule: ({ params }) => ({ status: 200, body: show(find(params.id)) }),
    updateWsRule: ({ params, body }) => {
      check(body);
      return { status: 200, body: show(replace(updatedWsRule(find(params.id), body, clock.now()))) };
    },
    deleteWsRule: ({ params }) => {
      if (!store.remove(params.id)) return notFound("message rule", params.id);
      hits.forget(params.id);
      onChange();
      return { status: 204 };
    },
    toggleWsRule: ({ params, body }) => {
      const rule = find(params.id);
      const enabled = body?.enabled ?? !rule.enabled;
      if (enabled !== rule.enabled) replace({ ...rule, enabled, updatedAtMs: clock.now() });
      return { status: 200, body: { id: rule.id, enabled } };
    },
  };
}

function check(body: NewWsRule | WsRuleUpdate): void {
  const issues = wsRuleIssues(body);
  if (issues.length > 0) throw validationError(issues.map(({ path, message }) => ({ path: `body${path}`, message })));
}

interface MessageHandlersParts {
  readonly interceptor: WsTrafficInterceptor;
  readonly paused: PausedMessages;
  /** Throws 404. */
  readonly found: (id: string) => Promise<StreamRow>;
}

type MessageOperations = Pick<
  Handlers<typeof wsTrafficOperations>,
  "sendWsMessage" | "closeWsConnection" | "listWsPaused" | "resumeWsMessage"
>;

function createMessageHandlers({ interceptor, paused, found }: MessageHandlersParts): MessageOperations {
  const openControl = async (id: string) => {
    const control = interceptor.control(id);
    if (control !== undefined) return control;
    await found(id);
    throw new ApiError("CONFLICT", "The connection is closed");
  };
  return {
    sendWsMessage: async ({ params, body }) => {
      const control = await openControl(params.id);
      const payload = contentOf(body) ?? Buffer.alloc(0);
      const type = body.message_type ?? (body.base64 === undefined ? "text" : "binary");
      if ((type === "ping" || type === "pong") && payload.length > MAX_CONTROL_BYTES) {
        throw validationError([{ path: "body", message: `a ${type} has at most ${MAX_CONTROL_BYTES} bytes` }]);
      }
      if (type === "text" && body.base64 !== undefined && !isWellFormed(payload)) {
        throw validationError([{ path: "body/base64", message: "a text message must be UTF-8" }]);
      }
      if (!control.inject(body.direction ?? "send", OPCODES[type], payload)) {
        throw new ApiError("CONFLICT", "The connection no longer accepts messages");
      }
      return { status: 204 };
    },
    closeWsConnection: async ({ params, body }) => {
      const control = await openControl(params.id);
      const code = body?.code ?? 1000;
      if (!isSendableCloseCode(code)) {
        throw validationError([{ path: "body/code", message: `the close code ${code} must not be sent` }]);
      }
      const reason = body?.reason ?? "";
      // The schema counts characters, frames count bytes; a longer reason would be cut silently.
      if (Buffer.byteLength(reason) > MAX_REASON_BYTES) {
        throw validationError([
          { path: "body/reason", message: `must not have more than ${MAX_REASON_BYTES} bytes in UTF-8` },
        ]);
      }
      if (!control.close(code, reason)) throw new ApiError("CONFLICT", "The connection is closing already");
      return { status: 204 };
    },
    listWsPaused: () => ({ status: 200, body: paused.list() }),
    resumeWsMessage: ({ params, body }) => {
      const opcode = paused.opcodeOf(params.id) ?? notFound("paused message", params.id);
      const payload = contentOf(body);
      if (body.action !== "modify") {
        paused.resume(params.id, { kind: body.action === "drop" ? "drop" : "pass" });
        return { status: 204 };
      }
      if (payload === undefined) throw validationError([{ path: "body", message: "modify needs text or base64" }]);
      if (opcode === OPCODES.text && !isWellFormed(payload)) {
        throw validationError([{ path: "body/base64", message: "a text message must be UTF-8" }]);
      }
      if (opcode >= OPCODES.close && payload.length > MAX_CONTROL_BYTES) {
        throw validationError([{ path: "body", message: `it has at most ${MAX_CONTROL_BYTES} bytes` }]);
      }
      paused.resume(params.id, { kind: "replace", payload });
      return { status: 204 };
    },
  };
}

function contentOf(body: {
  readonly text?: string | undefined;
  readonly base64?: string | undefined;
}): Buffer | undefined {
  const { text, base64 } = body;
  if (text !== undefined && base64 !== undefined) {
    throw validationError([{ path: "body/base64", message: "cannot be combined with text" }]);
  }
  if (base64 === undefined) return text === undefined ? undefined : Buffer.from(text);
  if (!BASE64.test(base64)) throw validationError([{ path: "body/base64", message: "must be base64" }]);
  return Buffer.from(base64, "base64");
}

function isWellFormed(payload: Buffer): boolean {
  return Buffer.from(payload.toString("utf8")).equals(payload);
}
