import type { wsTrafficOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { isSendableCloseCode, OPCODES } from "@headworks/websocket";
import { ApiError, notFound, validationError } from "#api/api-error.ts";
import type { StreamRow } from "#storage/streams/stream-store.ts";
import type { PausedMessages } from "./paused-messages.ts";
import type { WsTrafficInterceptor } from "./ws-traffic.interceptor.ts";

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/u;
const MAX_CONTROL_BYTES = 125;
/** A close frame has its code before the reason. */
const MAX_REASON_BYTES = MAX_CONTROL_BYTES - 2;

export interface MessageHandlersParts {
  readonly interceptor: WsTrafficInterceptor;
  readonly paused: PausedMessages;
  /** The stored connection, or 404. */
  readonly found: (id: string) => Promise<StreamRow>;
}

type MessageOperations = Pick<
  Handlers<typeof wsTrafficOperations>,
  "sendWsMessage" | "closeWsConnection" | "listWsPaused" | "resumeWsMessage"
>;

/** Handlers of what a person does to open connections and to messages that wait. */
export function createMessageHandlers({ interceptor, paused, found }: MessageHandlersParts): MessageOperations {
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
        throw new ApiError("CONFLICT", "The connection takes no messages any more");
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
      // The schema counts characters; a frame holds bytes, and what does not fit would be cut without a word.
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

/** undefined: there is none. */
function contentOf(body: {
  readonly text?: string | undefined;
  readonly base64?: string | undefined;
}): Buffer | undefined {
  const { text, base64 } = body;
  if (text !== undefined && base64 !== undefined) {
    throw validationError([{ path: "body/base64", message: "cannot stand beside text" }]);
  }
  if (base64 === undefined) return text === undefined ? undefined : Buffer.from(text);
  if (!BASE64.test(base64)) throw validationError([{ path: "body/base64", message: "must be base64" }]);
  return Buffer.from(base64, "base64");
}

function isWellFormed(payload: Buffer): boolean {
  return Buffer.from(payload.toString("utf8")).equals(payload);
}
