import type { ScriptHook } from "@headworks/capture-contract";
import { parseCallForm, parseCallPath } from "@headworks/grpc-framing";
import { reasonPhrase } from "@headworks/http-fields";
import { parseContentEncoding } from "@headworks/http-fields/content-coding";
import { fieldValue, fieldValues, type RawFields } from "@headworks/http1";
import type { GuestValue } from "@headworks/sandbox";
import { type Exchange, exchangeUrl, type ExchangeView } from "#exchange/exchange.ts";
import type { MessageFilter, MessageVerdict, TappedMessage } from "#exchange/messages.ts";
import type { BodySpool } from "#exchange/body.ts";
import { CONTINUE, type Interceptor, type StoreFilter, type Verdict } from "#exchange/phases.ts";
import { fieldPairs } from "#exchange/shown-message.ts";
import { fieldProblem } from "#rules/field-problem.ts";
import { leaveBody, moveTo, setMethod, setStatus, shown } from "#rules/message-actions.ts";
import { type BodyLimits, type EditedExchange, MessageEdit, type Phase } from "#rules/message-edit.ts";
import { parseUrlTarget } from "#rules/url-edit.ts";
import {
  bytesOf,
  type CompiledScript,
  filteredRequest,
  NOT_NAMED,
  type ScriptSet,
  scriptSet,
  type SharedData,
} from "./compiled-script.ts";
import { GrpcMessages } from "./grpc-messages.ts";
import { createStoreFilter } from "./store-filter.ts";
import type { HookOutput } from "./hook-output.ts";
import type { HookInput, HookOutcome, ScriptRunner } from "./script-runner.ts";

/** Calls a hook of a script. */
export type CallHook = (
  script: CompiledScript,
  hook: ScriptHook,
  input: HookInput,
  bodies: readonly GuestValue[],
) => Promise<HookOutcome>;

export interface ScriptRun {
  readonly exchange: EditedExchange;
  readonly phase: Phase;
  readonly scripts: readonly CompiledScript[];
  readonly context: Readonly<Record<string, unknown>>;
  readonly data: SharedData;
  /** Milliseconds between request and response head; for the response phase. */
  readonly durationMs: number | null;
  readonly limits: BodyLimits;
  readonly call: CallHook;
  readonly onCalled: (
    script: CompiledScript,
    hook: ScriptHook,
    outcome: HookOutcome,
    changes: readonly string[],
  ) => void;
}

/** Runs the scripts of one phase in order, each on the message as the one before left it. */
export async function runScripts(run: ScriptRun): Promise<Verdict> {
  const { exchange, phase, scripts, limits, onCalled } = run;
  const hook = phase === "request" ? "on_request" : "on_response";
  const edit = new MessageEdit("script", exchange, phase, limits);
  let refusal: Verdict = CONTINUE;
  for (const script of scripts) {
    if (!script.matches(filteredRequest(exchange))) continue;
    edit.begin(script.id, script.name);
    const outcome = await callScript(run, script, hook, edit);
    const { output, error } = outcome;
    if (output?.data !== undefined) run.data.text = output.data;
    if (output !== undefined) refusal = await apply(edit, output, outcome.bodies);
    if (error !== null) edit.note(`failed: ${error}`);
    onCalled(script, hook, outcome, edit.changesOfRule);
    if (output?.delayMs !== undefined && output.delayMs > 0) await delay(limits, output.delayMs);
    if (refusal.kind !== "continue" || edit.ownResponse !== undefined) break;
    if (error !== null && script.onError === "stop_chain") break;
  }
  await edit.finish();
  if (edit.ownResponse !== undefined) return { kind: "respond", response: edit.ownResponse };
  return refusal;
}

async function callScript(
  run: ScriptRun,
  script: CompiledScript,
  hook: ScriptHook,
  edit: MessageEdit,
): Promise<HookOutcome> {
  const { request } = edit;
  const body = await passedBody(script, edit);
  const input: HookInput = {
    context: { ...run.context, hook },
    request: { method: request.method, url: exchangeUrl(request), fields: request.fields },
    data: run.data.text,
    ...(run.phase === "request"
      ? { requestBody: body.form }
      : {
          // The request was sent; its body is not kept for its response.
          requestBody: "the request's body is not available in onResponse; keep what is needed in context.data",
          response: {
            status: edit.response.status,
            reason: edit.response.reason,
            fields: edit.response.fields,
            durationMs: run.durationMs,
          },
          responseBody: body.form,
        }),
  };
  return await run.call(script, hook, input, run.phase === "request" ? [body.value] : [null, body.value]);
}

async function passedBody(
  script: CompiledScript,
  { body }: MessageEdit,
): Promise<{ readonly form: string; readonly value: GuestValue }> {
  if (!script.usesBody && !body.isLoaded) return { form: NOT_NAMED, value: null };
  if (body.noBodyReason !== undefined) return { form: "none", value: null };
  await body.load();
  if (body.isBodiless) return { form: "none", value: null };
  if (body.obstacle !== undefined) return { form: body.obstacle, value: null };
  const text = body.exactText;
  if (text !== undefined) return { form: "text", value: text };
  return { form: "bytes", value: body.bytes ?? null };
}

/** Resolves early when the exchange is over. */
function delay({ after }: BodyLimits, delayMs: number, over?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (over?.aborted === true) return resolve();
    const end = (): void => {
      cancel();
      over?.removeEventListener("abort", end);
      resolve();
    };
    const cancel = after(delayMs, end);
    over?.addEventListener("abort", end);
  });
}

/** Applies what a script changed and decided. */
async function apply(edit: MessageEdit, output: HookOutput, bodies: readonly GuestValue[]): Promise<Verdict> {
  const [body = null] = bodies;
  if (output.stop === true) {
    if (output.response === undefined) {
      const closes = output.close === true;
      edit.changed(closes ? "closed the connection" : "cut the exchange off");
      return { kind: "abort", reason: "A script cut the exchange off", ...(closes && { closes }) };
    }
    const { status, reason, fields } = output.response;
    const bytes = bytesOf(body);
    edit.changed(`responded with ${String(status)} and ${String(bytes.length)} bytes`);
    edit.ownResponse = {
      status,
      reason: reason ?? reasonPhrase(status),
      fields: [...withoutFraming(fields), "Content-Length", String(bytes.length)],
      body: bytes,
    };
    return CONTINUE;
  }
  const { request, change } = output;
  if (edit.phase === "request" && request !== undefined) applyRequest(edit, request);
  if (edit.phase === "response" && change !== undefined) await applyResponse(edit, change);
  if (output.bodyChanged === true) await applyBody(edit, body);
  return CONTINUE;
}

function applyRequest(edit: MessageEdit, { method, url, fields }: NonNullable<HookOutput["request"]>): void {
  if (method !== undefined) setMethod(edit, method);
  if (fields !== undefined) applyFields(edit, fields);
  if (url === undefined) return;
  const target = parseUrlTarget(url);
  if (typeof target === "string") edit.note(`URL not changed: ${shown(url)} ${target}`);
  else moveTo(edit, target, exchangeUrl(edit.request));
}

async function applyResponse(
  edit: MessageEdit,
  { status, reason, fields }: NonNullable<HookOutput["change"]>,
): Promise<void> {
  if (status !== undefined) await setStatus(edit, status);
  if (reason !== undefined) {
    edit.changeResponse().reason = reason;
    edit.changed(`reason ${shown(reason)}`);
  }
  if (fields !== undefined) applyFields(edit, fields);
}

/** The proxy frames bodies itself: fields about framing stay as they are. */
function applyFields(edit: MessageEdit, fields: RawFields): void {
  const before = edit.fields;
  const framing = fieldPairs(before).filter(([name]) => fieldProblem(name) !== undefined);
  const changed = [...withoutFraming(fields), ...framing.flat()];
  const words = fieldChanges(before, changed);
  if (words.length === 0) return;
  edit.setFields(changed);
  for (const each of words) edit.changed(each);
}

function withoutFraming(fields: RawFields): RawFields {
  return fieldPairs(fields)
    .filter(([name]) => fieldProblem(name) === undefined)
    .flat();
}

/** The difference of two field lists by name, for a trace. */
function fieldChanges(before: Readonly<RawFields>, after: Readonly<RawFields>): string[] {
  const old = valuesByName(before);
  const now = valuesByName(after);
  const changes: string[] = [];
  for (const [lowerName, { name, values }] of now) {
    const previous = old.get(lowerName)?.values.join("\n");
    if (previous !== values.join("\n")) changes.push(`set header ${name}: ${shown(values.join(", "))}`);
  }
  for (const [lowerName, { name }] of old) if (!now.has(lowerName)) changes.push(`removed header ${name}`);
  return changes;
}

function valuesByName(fields: Readonly<RawFields>): Map<string, { readonly name: string; readonly values: string[] }> {
  const values = new Map<string, { readonly name: string; readonly values: string[] }>();
  for (const [name, value] of fieldPairs(fields)) {
    const known = values.get(name.toLowerCase());
    if (known === undefined) values.set(name.toLowerCase(), { name, values: [value] });
    else known.values.push(value);
  }
  return values;
}

async function applyBody(edit: MessageEdit, value: GuestValue): Promise<void> {
  if (edit.body.noBodyReason !== undefined) return leaveBody(edit, edit.body.noBodyReason);
  const before = edit.body.bytes?.length;
  const isReplaced =
    typeof value === "string" && edit.body.exactText !== undefined
      ? (edit.body.replaceText(value), true)
      : await edit.replaceBody(typeof value === "string" ? value : bytesOf(value));
  if (!isReplaced) return;
  const after = edit.body.bytes?.length ?? 0;
  edit.changedBody(
    before === undefined ? `body of ${String(after)} bytes` : `body ${String(before)} to ${String(after)} bytes`,
  );
}

/** A call of a hook, for the history. */
export interface HookCall {
  readonly scriptId: string;
  readonly scriptName: string;
  /** Null in a history that does not know it. */
  readonly hook: ScriptHook | null;
  /** Null without a recorded exchange. */
  readonly entryId: string | null;
  readonly durationMs: number;
  readonly error: string | null;
  readonly console: readonly string[];
  readonly changes: readonly string[];
  readonly atMs: number;
}

export interface ScriptPipelineParts {
  readonly runner: Pick<ScriptRunner, "call">;
  readonly limits: () => BodyLimits;
  readonly sessionIdOf: (exchange: ExchangeView) => string;
  readonly onCall: (call: HookCall) => void;
  readonly nowMs: () => number;
  readonly spool: BodySpool;
  /** Limit of a stored body. */
  readonly maxStoredBytes: () => number;
}

/** The scripts of one message. */
interface MessageRun {
  readonly exchange: ExchangeView;
  readonly hook: ScriptHook;
  readonly scripts: readonly CompiledScript[];
  /** Members of the script's context, besides those that all hooks have. */
  readonly context: Readonly<Record<string, unknown>>;
  readonly valueOf: (payload: Buffer) => GuestValue;
  /** Aborted: the exchange is over. */
  readonly over?: AbortSignal;
  readonly onChange?: (script: CompiledScript, words: string) => void;
}

/** Calls the hooks of scripts for exchanges. Without scripts it costs a length check per phase. */
export class ScriptPipeline implements Interceptor {
  readonly name = "scripts";
  scripts: ScriptSet = scriptSet([]);
  readonly #parts: ScriptPipelineParts;
  readonly #data = new WeakMap<object, SharedData>();

  constructor(parts: ScriptPipelineParts) {
    this.#parts = parts;
  }

  /** Decides what is stored of exchanges. */
  createStoreFilter(): StoreFilter {
    return createStoreFilter({
      scripts: () => this.scripts.on_traffic_store,
      call: (script, exchange, input, bodies) => {
        const context = { ...this.#contextOf(exchange), hook: "on_traffic_store" };
        return this.#parts.runner.call(script.id, "on_traffic_store", { ...input, context }, bodies);
      },
      onCalled: (script, exchange, outcome, changes) =>
        this.#record(script, "on_traffic_store", exchange, outcome, changes),
      dataOf: (exchange) => this.#dataOf(exchange),
      spool: this.#parts.spool,
      maxBytes: () => ({ read: this.#parts.limits().bodyBytes, stored: this.#parts.maxStoredBytes() }),
    });
  }

  /** A capture session became the active one, or is no longer. */
  sessionChanged(
    hook: "on_session_start" | "on_session_end",
    session: { readonly id: string; readonly name: string | null },
  ): void {
    for (const script of this.scripts[hook]) {
      const context = { sessionId: session.id, requestId: null, hook, session };
      void this.#parts.runner
        .call(script.id, hook, { context }, [])
        .then((outcome) => this.#record(script, hook, undefined, outcome, []));
    }
  }

  onRequestHead(exchange: Exchange): Verdict | Promise<Verdict> {
    const scripts = this.scripts.on_request;
    const verdict = scripts.length === 0 ? CONTINUE : this.#run(exchange, "request", scripts);
    return this.scripts.on_grpc_message.length === 0 ? verdict : this.#withGrpc(exchange, "request", verdict);
  }

  onResponseHead(exchange: Exchange): Verdict | Promise<Verdict> {
    const scripts = this.scripts.on_response;
    const verdict = scripts.length === 0 ? CONTINUE : this.#run(exchange, "response", scripts);
    return this.scripts.on_grpc_message.length === 0 ? verdict : this.#withGrpc(exchange, "response", verdict);
  }

  /** Scripts see whole messages of WebSocket connections; control frames are not passed to them. */
  filterMessages(exchange: ExchangeView): MessageFilter | undefined {
    const current = this.#matching(exchange, "on_websocket_message");
    return {
      gates: () => current().length > 0,
      decide: (message) => this.#decideWebSocket(exchange, current(), message),
    };
  }

  /** The scripts of a hook that match the request as it is now; scripts may change while messages pass. */
  #matching(exchange: ExchangeView, hook: ScriptHook): () => readonly CompiledScript[] {
    const request = filteredRequest(exchange);
    let known: ScriptSet | undefined;
    let matching: readonly CompiledScript[] = [];
    return () => {
      if (known !== this.scripts) {
        known = this.scripts;
        matching = this.scripts[hook].filter((script) => script.matches(request));
      }
      return matching;
    };
  }

  #run(exchange: Exchange, phase: Phase, scripts: readonly CompiledScript[]): Verdict | Promise<Verdict> {
    const { request, moments } = exchange;
    if (request.scheme === "tcp") return CONTINUE;
    // A script may change what later ones match, so this only decides whether there is anything to run.
    const filtered = filteredRequest(exchange);
    if (!scripts.some((script) => script.matches(filtered))) return CONTINUE;
    return runScripts({
      exchange,
      phase,
      scripts,
      context: this.#contextOf(exchange),
      data: this.#dataOf(exchange),
      durationMs: phase === "response" ? Math.round((moments.firstByte || performance.now()) - moments.started) : null,
      limits: this.#parts.limits(),
      call: (script, hook, input, bodies) => this.#parts.runner.call(script.id, hook, input, bodies),
      onCalled: (script, hook, outcome, changes) => this.#record(script, hook, exchange, outcome, changes),
    });
  }

  async #decideWebSocket(
    exchange: ExchangeView,
    scripts: readonly CompiledScript[],
    { direction, opcode, payload }: TappedMessage,
  ): Promise<MessageVerdict> {
    const type = WS_TYPES[opcode];
    if (type === undefined) return { kind: "pass" };
    return await this.#decideMessage(
      {
        exchange,
        hook: "on_websocket_message",
        scripts,
        context: { connection_id: exchange.id, direction, message_type: type, is_binary: type === "binary" },
        valueOf: (bytes) => (type === "text" ? bytes.toString("utf8") : bytes),
      },
      payload,
    );
  }

  /** Runs the scripts of a message in order, each on the payload as the one before left it. */
  async #decideMessage(run: MessageRun, original: Buffer): Promise<MessageVerdict> {
    const { exchange, hook, scripts, context, valueOf, over, onChange } = run;
    const { request } = exchange;
    const data = this.#dataOf(exchange);
    let payload = original;
    for (const script of scripts) {
      const outcome = await this.#parts.runner.call(
        script.id,
        hook,
        {
          context: { ...this.#contextOf(exchange), hook, ...context },
          request: { method: request.method, url: exchangeUrl(request), fields: request.fields },
          data: data.text,
        },
        [valueOf(payload)],
      );
      const { output, error, bodies } = outcome;
      const [changed = null] = bodies;
      const changes: string[] = [];
      if (output?.data !== undefined) data.text = output.data;
      if (output?.bodyChanged === true) {
        changes.push(`message ${String(payload.length)} to ${String(bytesOf(changed).length)} bytes`);
        payload = bytesOf(changed);
        onChange?.(script, "changed messages");
      }
      if (output?.stop === true) {
        changes.push("dropped the message");
        onChange?.(script, "dropped messages");
      }
      this.#record(script, hook, exchange, outcome, changes);
      if (output?.delayMs !== undefined) await delay(this.#parts.limits(), output.delayMs, over);
      if (output?.stop === true) return { kind: "drop" };
      if ((error !== null && script.onError === "stop_chain") || over?.aborted === true) break;
    }
    return payload === original ? { kind: "pass" } : { kind: "replace", payload };
  }

  #withGrpc(exchange: Exchange, phase: Phase, verdict: Verdict | Promise<Verdict>): Verdict | Promise<Verdict> {
    if (verdict instanceof Promise) return verdict.then((decided) => this.#withGrpc(exchange, phase, decided));
    if (verdict.kind === "continue") this.#filterGrpc(exchange, phase);
    return verdict;
  }

  /** Scripts see the messages of gRPC; gRPC-Web passes. */
  #filterGrpc(exchange: Exchange, phase: Phase): void {
    const fields = (phase === "request" ? exchange.request : exchange.response)?.fields ?? [];
    const form = parseCallForm(fieldValue(fields, "content-type"));
    if (form?.protocol !== "grpc") return;
    const current = this.#matching(exchange, "on_grpc_message");
    if (current().length === 0) return;
    const noted = new Set<string>();
    const addTrace = ({ id, name }: CompiledScript, words: string): void => {
      const key = `${id} ${words}`;
      if (noted.has(key)) return;
      noted.add(key);
      exchange.addTrace({ kind: "script", ruleId: id, ruleName: name, phase, changes: [words] });
    };
    const onNote = (words: string): void => current().forEach((script) => addTrace(script, words));
    if (parseContentEncoding(fieldValues(fields, "content-encoding")).length > 0) {
      return onNote("gRPC with Content-Encoding is forwarded unchanged");
    }
    exchange.filterBody(phase, (to) => {
      const { service = "", method = "" } = parseCallPath(exchange.request.path) ?? {};
      const direction = phase === "request" ? "send" : "receive";
      const run: Omit<MessageRun, "scripts" | "over"> = {
        exchange,
        hook: "on_grpc_message",
        context: { stream_id: exchange.id, service, method, direction },
        valueOf: (bytes) => bytes,
        onChange: addTrace,
      };
      return new GrpcMessages({
        to,
        decider: {
          gates: () => current().length > 0,
          decide: (message, over) => this.#decideMessage({ ...run, scripts: current(), over }, message),
        },
        encoding: (fieldValue(fields, "grpc-encoding") ?? "identity").trim().toLowerCase(),
        limitBytes: this.#parts.limits().bodyBytes,
        onNote,
      });
    });
  }

  #contextOf(exchange: ExchangeView): Readonly<Record<string, unknown>> {
    return { requestId: exchange.id, sessionId: this.#parts.sessionIdOf(exchange) };
  }

  #dataOf(exchange: object): SharedData {
    let data = this.#data.get(exchange);
    if (data === undefined) this.#data.set(exchange, (data = { text: undefined }));
    return data;
  }

  #record(
    script: CompiledScript,
    hook: ScriptHook,
    exchange: ExchangeView | undefined,
    { durationMs, error, console }: HookOutcome,
    changes: readonly string[],
  ): void {
    this.#parts.onCall({
      scriptId: script.id,
      scriptName: script.name,
      hook,
      entryId: exchange?.isRecorded === true ? exchange.id : null,
      durationMs,
      error,
      console,
      changes,
      atMs: this.#parts.nowMs(),
    });
  }
}

/** RFC 6455, section 11.8. */
const WS_TYPES: Readonly<Record<number, "text" | "binary">> = { 1: "text", 2: "binary" };
