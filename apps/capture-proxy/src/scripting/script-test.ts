import type {
  RequestData,
  ResponseData,
  RewrittenRequest,
  RewrittenResponse,
  ScriptTest,
  ScriptTestResult,
  TestedRequest,
  TestedResponse,
  TrafficEntry,
} from "@headworks/capture-contract";
import { reasonPhrase } from "@headworks/http-fields";
import type { GuestValue } from "@headworks/sandbox";
import { exchangeUrl } from "#exchange/exchange.ts";
import { joinedFields } from "#exchange/shown-message.ts";
import type { BodyLimits } from "#rules/message-edit.ts";
import { RecordedExchange, type RecordedMessages } from "#rules/recorded-exchange.ts";
import { parseUrlTarget } from "#rules/url-edit.ts";
import { type CompiledScript, namesBody } from "./compiled-script.ts";
import { runScripts } from "./script-pipeline.ts";
import type { HookInput, HookOutcome, ScriptRunner } from "./script-runner.ts";

export interface ScriptTestParts {
  readonly runner: Pick<ScriptRunner, "callOnce">;
  readonly limits: () => BodyLimits;
}

const SAMPLE_ID = "00000000-0000-7000-8000-000000000000";
const SAMPLE_URL = "https://example.com/";

/** Runs a source on a sample or a captured entry: nothing is sent, stored or kept. */
export async function testScript(
  body: ScriptTest,
  entry: TrafficEntry | undefined,
  parts: ScriptTestParts,
): Promise<ScriptTestResult> {
  const exchange = new RecordedExchange(entry ?? sampleMessages(body));
  const context = { requestId: entry?.id ?? SAMPLE_ID, sessionId: entry?.session_id ?? SAMPLE_ID };
  if (body.hook === "on_request" || body.hook === "on_response") {
    return await testExchange({ ...body, hook: body.hook }, exchange, context, parts);
  }
  return await testOther(body, exchange, context, parts);
}

async function testExchange(
  { source, hook }: ScriptTest & { readonly hook: "on_request" | "on_response" },
  exchange: RecordedExchange,
  context: Readonly<Record<string, unknown>>,
  { runner, limits }: ScriptTestParts,
): Promise<ScriptTestResult> {
  const phase = hook === "on_request" ? "request" : "response";
  const [requestBefore, responseBefore] = [await exchange.shownRequest(), await exchange.shownResponse()];
  const script: CompiledScript = {
    id: "test",
    name: "test",
    hooks: new Set([hook]),
    onError: "stop_chain",
    usesBody: namesBody(source),
    matches: () => true,
  };
  let called: { readonly outcome: HookOutcome; readonly changes: readonly string[] } | undefined;
  let delayMs = 0;
  const verdict = await runScripts({
    exchange,
    phase,
    scripts: [script],
    context,
    data: { text: undefined },
    durationMs: phase === "response" ? 0 : null,
    limits: limits(),
    call: async (_script, _hook, input, bodies) => {
      const { output, ...outcome } = await runner.callOnce(source, hook, input, bodies);
      delayMs = output?.delayMs ?? 0;
      return { ...outcome, output: output === undefined ? undefined : { ...output, delayMs: 0 } };
    },
    onCalled: (_script, _hook, outcome, changes) => (called = { outcome, changes }),
  });
  const changes = called?.changes ?? [];
  if (verdict.kind === "respond") exchange.respond(verdict.response);
  const [requestAfter, responseAfter] = [await exchange.shownRequest(), await exchange.shownResponse()];
  const isOwn = verdict.kind === "respond";
  return {
    ...resultOf(called?.outcome, changes),
    delay_ms: delayMs,
    continue_: called?.outcome.output?.stop !== true,
    response: isOwn && responseAfter !== null ? testedResponse(responseAfter) : null,
    request: testedRequest(requestBefore),
    modified_request: phase === "request" && changes.length > 0 && !isOwn ? testedRequest(requestAfter) : null,
    original_response: phase === "response" && responseBefore !== null ? testedResponse(responseBefore) : null,
    modified_response:
      phase === "response" && changes.length > 0 && responseAfter !== null ? testedResponse(responseAfter) : null,
  };
}

function resultOf(outcome: HookOutcome | undefined, changes: readonly string[]): ScriptTestResult {
  return {
    modified: changes.length > 0,
    continue_: outcome?.output?.stop !== true,
    response: null,
    error: outcome?.error ?? null,
    console: [...(outcome?.console ?? [])],
    changes: [...changes],
    duration_ms: outcome?.durationMs ?? 0,
    delay_ms: outcome?.output?.delayMs ?? 0,
    request: null,
    modified_request: null,
    original_response: null,
    modified_response: null,
    modified_payload: null,
  };
}

/** Hooks of messages, of the store and of sessions. */
async function testOther(
  test: ScriptTest,
  exchange: RecordedExchange,
  context: Readonly<Record<string, unknown>>,
  { runner }: ScriptTestParts,
): Promise<ScriptTestResult> {
  const { source, hook } = test;
  const { context: own, bodies = [], ...messages } = await sampleInput(test, exchange);
  const input: HookInput = { context: { ...context, hook, ...own }, ...messages };
  const outcome = await runner.callOnce(source, hook, input, bodies);
  const { output } = outcome;
  const changes: string[] = [];
  if (output?.request?.fields !== undefined || output?.request?.url !== undefined) changes.push("changed the request");
  if (output?.change !== undefined) changes.push("changed the response");
  if (output?.requestBodyChanged === true) changes.push("changed the request's body");
  if (output?.responseBodyChanged === true) changes.push("changed the response's body");
  if (output?.bodyChanged === true) changes.push("changed the message");
  if (output?.notes !== undefined) changes.push(`notes: ${output.notes}`);
  if (output?.tags !== undefined) changes.push(`tags: ${output.tags.join(", ")}`);
  if (output?.stop === true) changes.push(hook === "on_traffic_store" ? "not stored" : "dropped the message");
  return {
    ...resultOf(outcome, changes),
    modified_payload: output?.bodyChanged === true ? shownPayload(outcome.bodies[0] ?? null) : null,
  };
}

/** The part of the input that belongs to the hook, and its bodies. */
async function sampleInput(
  { hook, message = {} }: ScriptTest,
  exchange: RecordedExchange,
): Promise<HookInput & { readonly bodies?: readonly GuestValue[] }> {
  const { method, fields } = exchange.request;
  const request = { method, url: exchangeUrl(exchange.request), fields };
  const { direction = "send", message_type: type = "text", payload = "" } = message;
  switch (hook) {
    case "on_websocket_message": {
      const context = { connection_id: SAMPLE_ID, direction, message_type: type, is_binary: type === "binary" };
      return { context, request, bodies: [binary(payload) ?? payload] };
    }
    case "on_grpc_message": {
      const { service = "example.Service", method: name = "Method" } = message;
      const context = { stream_id: SAMPLE_ID, direction, service, method: name };
      return { context, request, bodies: [binary(payload) ?? Buffer.from(payload, "utf8")] };
    }
    case "on_traffic_store": {
      const { response } = exchange;
      const { forms, values } = await storedBodies(exchange);
      return {
        context: {},
        request,
        ...forms,
        ...(response !== undefined && {
          response: { status: response.status, reason: response.reason, fields: response.fields, durationMs: 0 },
        }),
        bodies: values,
      };
    }
    default:
      return { context: { session: { id: SAMPLE_ID, name: "Sample" } } };
  }
}

function binary(payload: string): Buffer | undefined {
  return payload.startsWith("base64:") ? Buffer.from(payload.slice("base64:".length), "base64") : undefined;
}

function shownPayload(value: GuestValue): string | null {
  return value === null || typeof value === "string" ? value : `base64:${Buffer.from(value).toString("base64")}`;
}

async function storedBodies(exchange: RecordedExchange): Promise<{
  readonly forms: Pick<HookInput, "requestBody" | "responseBody">;
  readonly values: readonly GuestValue[];
}> {
  const [request, response] = [await exchange.shownRequest(), await exchange.shownResponse()];
  const of = (shown: RewrittenRequest | RewrittenResponse | null): { form: string; value: GuestValue } => {
    if (shown === null || shown.body === null) return { form: "none", value: null };
    if (shown.body_encoding === "utf8") return { form: "text", value: shown.body };
    return { form: "bytes", value: Buffer.from(shown.body.slice("base64:".length), "base64") };
  };
  const [sent, received] = [of(request), of(response)];
  return { forms: { requestBody: sent.form, responseBody: received.form }, values: [sent.value, received.value] };
}

function testedRequest({ method, url, headers_list: list, body }: RewrittenRequest): TestedRequest {
  return { method, url, headers: joinedFields(list.flat()), headers_list: list, body };
}

function testedResponse(shown: RewrittenResponse): TestedResponse {
  const { status_code, status_message, headers_list: list, body } = shown;
  return { status_code, status_message, headers: joinedFields(list.flat()), headers_list: list, body };
}

function sampleMessages({ request = {}, response = {} }: ScriptTest): RecordedMessages {
  const { method = "GET", url = SAMPLE_URL, body: requestBody = null } = request;
  const { status_code: status = 200, body: responseBody = null } = response;
  const target = parseUrlTarget(url);
  const [host, path] = typeof target === "string" ? ["example.com", "/"] : [target.host, target.path || "/"];
  return {
    request: { method, url, host, path, ...sampleMessage(request.headers, requestBody) },
    response: {
      status_code: status,
      status_message: response.status_message ?? reasonPhrase(status),
      ...sampleMessage(response.headers, responseBody),
    },
    original_request: null,
    original_response: null,
  };
}

type SampleMessage = Pick<
  RequestData & ResponseData,
  "headers_list" | "body" | "body_encoding" | "body_state" | "http_version"
>;

function sampleMessage(
  headers: Readonly<Record<string, string | readonly string[]>> | undefined,
  body: string | null,
): SampleMessage {
  const list = Object.entries(headers ?? {}).flatMap(([name, value]) =>
    (typeof value === "string" ? [value] : value).map((each): [string, string] => [name, each]),
  );
  const isBinary = body?.startsWith("base64:") === true;
  return {
    headers_list: list,
    body,
    body_encoding: body === null ? null : isBinary ? "base64" : "utf8",
    body_state: body === null || body === "" ? "none" : "complete",
    http_version: "HTTP/1.1",
  };
}
