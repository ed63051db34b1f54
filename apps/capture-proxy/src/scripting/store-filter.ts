import { decodeContent } from "@headworks/http-fields/content-coding";
import { fieldValue, fieldValues, type RawFields } from "@headworks/http1";
import type { GuestValue } from "@headworks/sandbox";
import { BodyCapture, type BodySpool } from "#exchange/body.ts";
import { type ExchangeFacts, exchangeUrl, type ExchangeView } from "#exchange/exchange.ts";
import type { StoreDecision, StoreFilter } from "#exchange/phases.ts";
import { withoutField } from "#rules/header-edit.ts";
import { readTextBody } from "#rules/text-body.ts";
import { moveRequest, parseUrlTarget } from "#rules/url-edit.ts";
import type { HookOutput } from "./hook-output.ts";
import { bytesOf, type CompiledScript, filteredRequest, NOT_NAMED, type SharedData } from "./compiled-script.ts";
import type { HookInput, HookOutcome } from "./script-runner.ts";

export interface StoreFilterParts {
  readonly scripts: () => readonly CompiledScript[];
  readonly call: (
    script: CompiledScript,
    exchange: ExchangeView,
    input: HookInput,
    bodies: readonly GuestValue[],
  ) => Promise<HookOutcome>;
  readonly onCalled: (
    script: CompiledScript,
    exchange: ExchangeView,
    outcome: HookOutcome,
    changes: readonly string[],
  ) => void;
  readonly dataOf: (exchange: ExchangeView) => SharedData;
  readonly spool: BodySpool;
  /** Limits of a decoded body that a script reads, and of a stored body. */
  readonly maxBytes: () => { readonly read: number; readonly stored: number };
}

/** The hook `on_traffic_store`: scripts decide what is stored of a finished exchange. */
export function createStoreFilter(parts: StoreFilterParts): StoreFilter {
  const matching = (exchange: ExchangeFacts): readonly CompiledScript[] => {
    const scripts = parts.scripts();
    if (scripts.length === 0) return scripts;
    const request = filteredRequest(exchange);
    return scripts.filter((script) => script.matches(request));
  };
  return {
    concerns: (exchange) => parts.scripts().length > 0 && matching(exchange).length > 0,
    decide: (exchange) => {
      const scripts = matching(exchange);
      return scripts.length === 0 ? undefined : decide(parts, scripts, exchange);
    },
  };
}

async function decide(
  parts: StoreFilterParts,
  scripts: readonly CompiledScript[],
  exchange: ExchangeView,
): Promise<StoreDecision> {
  let stored: ExchangeFacts = exchange;
  for (const script of scripts) {
    const limits = parts.maxBytes();
    const sent = await passedBody(script, stored.requestBody, stored.request.fields, limits.read);
    const received = await passedBody(script, stored.responseBody, stored.response?.fields ?? [], limits.read);
    const { request, response, moments } = stored;
    const input: HookInput = {
      context: {},
      request: { method: request.method, url: exchangeUrl(request), fields: request.fields },
      requestBody: sent.form,
      ...(response !== undefined && {
        response: {
          status: response.status,
          reason: response.reason,
          fields: response.fields,
          durationMs: Math.round(moments.ended - moments.started),
        },
      }),
      responseBody: received.form,
      data: parts.dataOf(exchange).text,
    };
    const outcome = await parts.call(script, exchange, input, [sent.value, received.value]);
    const { output, error, bodies } = outcome;
    const changes = output === undefined ? [] : changesOf(output);
    parts.onCalled(script, exchange, outcome, changes);
    if (output?.stop === true) return { kind: "skip" };
    if (output !== undefined) {
      stored = redacted(
        stored,
        output,
        bodies,
        (limitBytes) => new BodyCapture(limitBytes, parts.spool),
        limits.stored,
      );
    }
    if (error !== null && script.onError === "stop_chain") break;
  }
  return { kind: "store", exchange: stored };
}

/** The stored body as text or bytes, without content coding. */
async function passedBody(
  script: CompiledScript,
  body: BodyCapture,
  fields: Readonly<RawFields>,
  maxBytes: number,
): Promise<{ readonly form: string; readonly value: GuestValue }> {
  if (body.sizeBytes === 0) return { form: "none", value: null };
  if (!script.usesBody) return { form: NOT_NAMED, value: null };
  if (body.spooled !== undefined) {
    return { form: "the body is too large to be changed before it is stored", value: null };
  }
  if (body.state !== "complete") return { form: "the body is not stored completely", value: null };
  const decoded = await decodeContent(Buffer.concat(body.pieces), fieldValues(fields, "content-encoding"), {
    maxBytes,
  });
  if (decoded.stop !== undefined) return { form: "the body's content coding cannot be removed", value: null };
  const bytes = Buffer.from(decoded.bytes.buffer, decoded.bytes.byteOffset, decoded.bytes.byteLength);
  const text = readTextBody(bytes, fieldValue(fields, "content-type"));
  return text === undefined || text.charset === "octets"
    ? { form: "bytes", value: bytes }
    : { form: "text", value: text.text };
}

function changesOf(output: HookOutput): string[] {
  return [
    ...(output.stop === true ? ["not stored"] : []),
    ...(output.request === undefined ? [] : ["changed the stored request"]),
    ...(output.change === undefined ? [] : ["changed the stored response"]),
    ...(output.requestBodyChanged === true ? ["changed the stored body of the request"] : []),
    ...(output.responseBodyChanged === true ? ["changed the stored body of the response"] : []),
    ...(output.notes === undefined && output.tags === undefined ? [] : ["added a note"]),
  ];
}

/**
 * What is stored instead. The message before rules may have what a script removed, so that it is not stored beside a
 * changed message.
 */
function redacted(
  stored: ExchangeFacts,
  output: HookOutput,
  bodies: readonly GuestValue[],
  newCapture: (limitBytes: number) => BodyCapture,
  maxBytes: number,
): ExchangeFacts {
  const { request, change } = output;
  const [sentBody = null, receivedBody = null] = bodies;
  let { originalRequest, originalResponse } = stored;
  let changedRequest = { ...stored.request };
  if (request !== undefined || output.requestBodyChanged === true) {
    originalRequest = undefined;
    const { fieldLines: _lines, ...message } = changedRequest;
    const fields = request?.fields ?? message.fields;
    changedRequest = {
      ...message,
      method: request?.method ?? message.method,
      fields: output.requestBodyChanged === true ? withoutField(fields, "Content-Encoding").fields : [...fields],
    };
    const target = request?.url === undefined ? undefined : parseUrlTarget(request.url);
    if (target !== undefined && typeof target !== "string") moveRequest(changedRequest, target);
  }
  let changedResponse = stored.response;
  if (stored.response !== undefined && (change !== undefined || output.responseBodyChanged === true)) {
    originalResponse = undefined;
    const { fieldLines: _lines, ...message } = stored.response;
    const fields = change?.fields ?? message.fields;
    changedResponse = {
      ...message,
      status: change?.status ?? message.status,
      reason: change?.reason ?? message.reason,
      fields: output.responseBodyChanged === true ? withoutField(fields, "Content-Encoding").fields : [...fields],
    };
  }
  const replaced = (body: BodyCapture, value: GuestValue): BodyCapture => {
    body.discard();
    const capture = newCapture(maxBytes);
    const bytes = bytesOf(value);
    if (bytes.length > 0) capture.add(bytes);
    capture.end();
    return capture;
  };
  return {
    id: stored.id,
    startedAtMs: stored.startedAtMs,
    client: stored.client,
    request: changedRequest,
    response: changedResponse,
    requestBody: output.requestBodyChanged === true ? replaced(stored.requestBody, sentBody) : stored.requestBody,
    responseBody:
      output.responseBodyChanged === true ? replaced(stored.responseBody, receivedBody) : stored.responseBody,
    moments: stored.moments,
    state: stored.state,
    source: stored.source,
    passthrough: stored.passthrough,
    modified: stored.modified,
    serverAddress: stored.serverAddress,
    upstreamTls: stored.upstreamTls,
    isRecorded: stored.isRecorded,
    trace: stored.trace,
    originalRequest,
    originalResponse,
    note: noteWith(stored.note, output),
  };
}

/** The note of an entry with what a script adds; tags as `#tag`. */
function noteWith(note: string | undefined, { notes, tags = [] }: HookOutput): string | undefined {
  const words = tags.map((tag) => `#${tag.replace(/\s+/g, "-")}`).join(" ");
  const parts = [note, notes, words].filter((part) => part !== undefined && part !== "");
  return parts.length === 0 ? undefined : parts.join("\n");
}
