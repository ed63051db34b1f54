import { parseHostPort } from "@headworks/host-patterns";
import { reasonPhrase, wireText } from "@headworks/http-fields";
import { type RawFields, removeField, setField } from "@headworks/http1";
import { checkPattern, compilePattern, readReplacement } from "@headworks/linear-pattern";
import { ApiError, validationError } from "#api/api-error.ts";
import { exchangeUrl, type RequestMessage, type ResponseMessage, type Scheme } from "#exchange/exchange.ts";
import { CONTINUE, type SyntheticResponse, type Verdict } from "#exchange/phases.ts";
import { fieldPairs, joinedFields } from "#exchange/shown-message.ts";
import { type Decision, type EditStep, type GivenBody, separated } from "./decision.ts";
import { codingsOf, editableBody, type EditableBody, encodeBody, encodeEditedText } from "./editable-body.ts";
import { leaveTrace, type Paused } from "./paused-exchanges.ts";

const MAX_SHOWN_LENGTH = 200;

/** A validated decision; carrying it out cannot fail. */
export interface PreparedDecision {
  readonly delayMs: number;
  /** Applies the changes and returns the verdict. */
  carryOut(): Verdict;
}

/** Validates a decision without touching the exchange. Throws 400 or 409. */
export async function prepare(
  paused: Paused,
  decision: Decision,
  limits: { readonly bodyLimitBytes: number },
): Promise<PreparedDecision> {
  switch (decision.action) {
    case "continue":
      return at(() => {
        leaveTrace(paused, []);
        return CONTINUE;
      });
    case "abort":
      return at(() => {
        leaveTrace(paused, ["closed without a response"]);
        return { kind: "abort", reason: `Rejected at the breakpoint ${paused.rule.name}`, closes: true };
      });
    case "respond": {
      const response = await madeUp(decision);
      return at(() => {
        leaveTrace(paused, [`answered with ${response.status}`]);
        return { kind: "respond", response };
      });
    }
    case "modify": {
      const result = await edit(paused, decision.steps, limits.bodyLimitBytes);
      return { delayMs: decision.delayMs, carryOut: () => change(paused, result) };
    }
  }
}

function at(carryOut: () => Verdict): PreparedDecision {
  return { delayMs: 0, carryOut };
}

async function edit(
  paused: Paused,
  steps: (Decision & { action: "modify" })["steps"],
  limitBytes: number,
): Promise<Edited> {
  const { exchange, side } = paused;
  if (side === "request") {
    const { request } = exchange;
    return await edited({ side, message: request }, await draftBody(paused, request.fields, limitBytes), steps);
  }
  const { response } = exchange;
  if (response === undefined) throw new ApiError("CONFLICT", "There is no response to edit");
  return await edited({ side, message: response }, await draftBody(paused, response.fields, limitBytes), steps);
}

async function draftBody({ content }: Paused, fields: string[], limitBytes: number): Promise<DraftBody> {
  switch (content?.kind) {
    case "complete": {
      const { bytes } = content;
      return { kind: "whole", content: bytes, editable: await editableBody(bytes, fields, limitBytes) };
    }
    case undefined:
      return { kind: "fixed", why: "The body is still arriving: it can be edited once it is complete" };
    case "too-large":
      return { kind: "fixed", why: "The body is larger than breakpoint_body_limit and cannot be edited" };
    case "stream":
      return { kind: "fixed", why: "The body is an endless stream and cannot be edited" };
    case "gone":
      return { kind: "fixed", why: "The exchange has ended" };
  }
}

function change(paused: Paused, result: Edited): Verdict {
  const { exchange } = paused;
  const changes: string[] = [];
  if (result.side === "request") {
    changes.push(...requestChanges(exchange.request, result.message));
    if (changes.length > 0) Object.assign(exchange.changeRequest(), result.message);
  } else if (exchange.response !== undefined) {
    changes.push(...responseChanges(exchange.response, result.message));
    if (changes.length > 0) Object.assign(exchange.changeResponse(), result.message);
  }
  if (result.content !== undefined) {
    const beforeBytes = paused.content?.kind === "complete" ? paused.content.bytes.length : 0;
    changes.push(bodyChange(beforeBytes, result.content.length));
    if (result.side === "request") exchange.setRequestContent(result.content);
    else exchange.setResponseContent(result.content);
  }
  leaveTrace(paused, changes);
  return CONTINUE;
}

/** Statuses whose responses have no content (RFC 9110 sections 15.3.5, 15.3.6 and 15.4.5). */
const WITHOUT_CONTENT = new Set([204, 205, 304]);

async function madeUp(decision: Decision & { action: "respond" }): Promise<SyntheticResponse> {
  const { status, reason, body } = decision;
  const fields = checkedFields(decision.fields, "body/headers");
  const isTyped = decision.fields.some(([name]) => name.toLowerCase() === "content-type");
  const plain = body.form === "bytes" ? body.bytes : encodeEditedText(body.text, fields, undefined);
  if (plain.length > 0 && !isTyped) {
    fields.push("Content-Type", body.form === "text" ? "text/plain; charset=utf-8" : "application/octet-stream");
  }
  const content = WITHOUT_CONTENT.has(status) ? Buffer.alloc(0) : await encodeBody(plain, fields);
  if (status !== 204 && status !== 304) fields.push("Content-Length", String(content.length));
  return { status, ...(reason === undefined ? {} : { reason }), fields, body: content };
}

/** Human-readable changes of a request. */
export function requestChanges(before: Readonly<RequestMessage>, after: Readonly<RequestMessage>): string[] {
  const changes: string[] = [];
  if (before.method !== after.method) changes.push(`method ${before.method} to ${after.method}`);
  const [from, to] = [exchangeUrl(before), exchangeUrl(after)];
  if (from !== to) changes.push(`url ${shortened(from)} to ${shortened(to)}`);
  return [...changes, ...fieldChanges(before.fields, after.fields)];
}

/** Human-readable changes of a response. */
export function responseChanges(before: Readonly<ResponseMessage>, after: Readonly<ResponseMessage>): string[] {
  const changes: string[] = [];
  if (before.status !== after.status) changes.push(`status ${before.status} to ${after.status}`);
  if (before.reason !== after.reason) changes.push("status message");
  return [...changes, ...fieldChanges(before.fields, after.fields)];
}

function bodyChange(beforeBytes: number, afterBytes: number): string {
  return `body ${beforeBytes} to ${afterBytes} bytes`;
}

function fieldChanges(before: readonly string[], after: readonly string[]): string[] {
  const was = byName(before);
  const is = byName(after);
  const changes: string[] = [];
  for (const [lower, { name, value }] of is) if (was.get(lower)?.value !== value) changes.push(`set header ${name}`);
  for (const [lower, { name }] of was) if (!is.has(lower)) changes.push(`removed header ${name}`);
  return changes;
}

function byName(fields: readonly string[]): Map<string, { name: string; value: string }> {
  return new Map(
    Object.entries(joinedFields([...fields])).map(([name, value]) => [name.toLowerCase(), { name, value }]),
  );
}

function shortened(text: string): string {
  return text.length <= MAX_SHOWN_LENGTH ? text : `${text.slice(0, MAX_SHOWN_LENGTH)}…`;
}

export type DraftBody =
  /** The whole body, as received and in its editable form. */
  | { readonly kind: "whole"; readonly content: Buffer; readonly editable: EditableBody }
  /** A body that cannot be edited. */
  | { readonly kind: "fixed"; readonly why: string };

/** An edited message; `content` is undefined if its body is unchanged. */
export type Edited =
  | { readonly side: "request"; readonly message: RequestMessage; readonly content: Buffer | undefined }
  | { readonly side: "response"; readonly message: ResponseMessage; readonly content: Buffer | undefined };

type Subject =
  | { readonly side: "request"; readonly message: Readonly<RequestMessage> }
  | { readonly side: "response"; readonly message: Readonly<ResponseMessage> };

/** Applies changes to a copy of a message. Throws 400, or 409 if the body cannot be edited. */
export async function edited(subject: Subject, body: DraftBody, steps: readonly EditStep[]): Promise<Edited> {
  const draft = new Draft(subject, body);
  for (const step of steps) draft.take(step);
  const content = await draft.content();
  const { request, response } = draft;
  if (request !== undefined) return { side: "request", message: request, content };
  if (response !== undefined) return { side: "response", message: response, content };
  throw new TypeError("A draft is of a request or of a response");
}

class Draft {
  readonly request: RequestMessage | undefined;
  readonly response: ResponseMessage | undefined;
  readonly #fields: RawFields;
  readonly #before: Subject;
  readonly #body: DraftBody;
  #given: GivenBody | undefined;

  constructor(subject: Subject, body: DraftBody) {
    this.#before = subject;
    this.#body = body;
    this.#fields = [...subject.message.fields];
    if (subject.side === "request") this.request = { ...subject.message, fields: this.#fields };
    else this.response = { ...subject.message, fields: this.#fields };
  }

  take(step: EditStep): void {
    switch (step.kind) {
      case "set-method":
        if (!isToken(step.method)) throw refused(step, "is not a method: letters, digits and -._~!#$%&'*+^`| only");
        if (step.method === "CONNECT") throw refused(step, "cannot be CONNECT, which opens a tunnel");
        this.#requestFor(step).method = step.method;
        return;
      case "set-url":
        return this.#setUrl(step, step.url);
      case "set-path":
        return this.#setPath(step, step.target);
      case "set-status":
        this.#responseFor(step).status = step.status;
        return this.#settleReason();
      case "set-reason":
        return this.#setReason(step, step.reason);
      case "set-field":
        return setField(this.#fields, step.name, checkedValue(step, step.name, step.value));
      case "remove-field":
        removeField(this.#fields, step.name.toLowerCase());
        return;
      case "set-all-fields":
        return this.#setAllFields(step, step.pairs);
      case "set-shown-fields":
        return this.#setShownFields(step, step.shown);
      case "set-body":
        this.#given = step.body;
        return;
      case "replace-in-body":
        return this.#replaceInBody(step, step.pattern, step.replacement);
      case "replace-in-url": {
        const url = exchangeUrl(this.#requestFor(step));
        return this.#setUrl(step, replaceMatches(url, step.pattern, step.replacement, `${step.path}/pattern`));
      }
    }
  }

  /** The edited body, content-coded; undefined if unchanged. */
  async content(): Promise<Buffer | undefined> {
    const given = this.#given;
    const body = this.#body;
    if (body.kind === "fixed") {
      if (given === undefined) return undefined;
      throw new ApiError("CONFLICT", body.why);
    }
    const { editable, content } = body;
    const isRecoded = !sameList(codingsOf(this.#fields), codingsOf(this.#before.message.fields));
    if (given === undefined || isUnchanged(given, editable)) {
      // Keeping the fields would contradict the bytes.
      if (!isRecoded || editable.form === "coded" || content.length === 0) return undefined;
      return await encodeBody(editable.bytes, this.#fields);
    }
    if (given.form === "bytes") {
      return editable.form === "coded" && !isRecoded ? given.bytes : await encodeBody(given.bytes, this.#fields);
    }
    const text = encodeEditedText(given.text, this.#fields, editable.text);
    const coded = await encodeBody(text, this.#fields);
    return coded.equals(content) ? undefined : coded;
  }

  #requestFor(step: EditStep): RequestMessage {
    if (this.request === undefined) throw refused(step, "is for requests, but the paused message is a response");
    return this.request;
  }

  #responseFor(step: EditStep): ResponseMessage {
    if (this.response === undefined) throw refused(step, "is for responses, but the paused message is a request");
    return this.response;
  }

  #setUrl(step: EditStep, url: string): void {
    // A URL sent back unchanged must not undo a change of the path; a response's URL is that of its request.
    if (this.#before.side === "request" && url === exchangeUrl(this.#before.message)) return;
    const request = this.#requestFor(step);
    const [, scheme = "", authority = "", target = ""] = /^([a-z]+):\/\/([^/?#]*)([^#]*)/i.exec(url) ?? [];
    const wanted = SCHEMES[scheme.toLowerCase()];
    if (wanted === undefined) throw refused(step, "must be an absolute URL with http:// or https://");
    const isUpgrade = request.scheme === "ws" || request.scheme === "wss";
    const [scheme0, port0] = isUpgrade ? wanted.upgrade : wanted.plain;
    const hostPort = parseHostPort(authority);
    if ("issue" in hostPort) throw refused(step, `has a host that is not valid: ${hostPort.issue}`);
    request.scheme = scheme0;
    request.host = hostPort.host;
    request.port = hostPort.port ?? port0;
    request.path = targetText(step, target.startsWith("/") ? target : `/${target}`);
  }

  #setPath(step: EditStep, target: string): void {
    if (this.#before.side === "request" && target === this.#before.message.path) return;
    const request = this.#requestFor(step);
    const isServerWide = target === "*" && request.method === "OPTIONS";
    if (!target.startsWith("/") && !isServerWide) throw refused(step, "must begin with /");
    request.path = targetText(step, target);
  }

  #setReason(step: EditStep, reason: string | null): void {
    const response = this.#responseFor(step);
    if (reason !== null && !VALUE.test(reason)) {
      throw refused(step, "contains a character that is not allowed in a status line");
    }
    // A reason sent back unchanged must not accompany another status.
    if (this.#before.side === "response" && reason === this.#before.message.reason) return;
    response.reason = reason ?? reasonPhrase(response.status);
  }

  #settleReason(): void {
    const { response } = this;
    if (response !== undefined && this.#before.side === "response" && response.status !== this.#before.message.status) {
      response.reason = reasonPhrase(response.status);
    }
  }

  #setAllFields(step: EditStep, pairs: readonly (readonly [string, string])[]): void {
    const before = fieldPairs(this.#before.message.fields);
    const isSame =
      pairs.length === before.length &&
      pairs.every(([name, value], index) => name === before[index]?.[0] && value === before[index]?.[1]);
    if (isSame) return;
    this.#replaceFields(step, pairs);
  }

  #setShownFields(step: EditStep, shown: Readonly<Record<string, string>>): void {
    const before = joinedFields(this.#before.message.fields);
    const wanted = new Map(Object.entries(shown).map(([name, value]) => [name.toLowerCase(), { name, value }]));
    const known = new Map(Object.entries(before).map(([name, value]) => [name.toLowerCase(), value]));
    const pairs: [string, string][] = [];
    const written = new Set<string>();
    for (const [name, value] of fieldPairs(this.#before.message.fields)) {
      const lower = name.toLowerCase();
      const now = wanted.get(lower);
      if (now === undefined) {
        // A list of fields without Host keeps the original one; only an explicit removal deletes it.
        if (lower === "host") pairs.push([name, value]);
        continue;
      }
      if (now.value === known.get(lower)) pairs.push([now.name, value]);
      else if (!written.has(lower)) pairs.push(...separated(now.name, now.value));
      written.add(lower);
    }
    for (const [lower, { name, value }] of wanted) if (!written.has(lower)) pairs.push(...separated(name, value));
    this.#replaceFields(step, pairs);
  }

  #replaceFields(step: EditStep, pairs: readonly (readonly [string, string])[]): void {
    const fields = pairs.flatMap(([name, value]) => [name, checkedValue(step, name, value)]);
    this.#fields.length = 0;
    for (const text of fields) this.#fields.push(text);
  }

  #replaceInBody(step: EditStep, pattern: string, replacement: string): void {
    const text = this.#text();
    if (text === undefined) throw refused(step, "is for text bodies, but this body is binary");
    const replaced = replaceMatches(text, pattern, replacement, `${step.path}/pattern`);
    if (replaced !== text) this.#given = { form: "text", text: replaced };
  }

  #text(): string | undefined {
    if (this.#given?.form === "text") return this.#given.text;
    if (this.#given !== undefined) return undefined;
    if (this.#body.kind === "fixed") throw new ApiError("CONFLICT", this.#body.why);
    return this.#body.editable.text?.value;
  }
}

const SCHEMES: Readonly<
  Record<string, { readonly plain: readonly [Scheme, number]; readonly upgrade: readonly [Scheme, number] }>
> = {
  http: { plain: ["http", 80], upgrade: ["ws", 80] },
  https: { plain: ["https", 443], upgrade: ["wss", 443] },
  ws: { plain: ["http", 80], upgrade: ["ws", 80] },
  wss: { plain: ["https", 443], upgrade: ["wss", 443] },
};

const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/;
/** Field values and reasons on the wire: Latin-1 without control characters except tab. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

function isToken(text: string): boolean {
  return TOKEN.test(text);
}

/** The encoded value. */
function checkedValue(step: { readonly path: string }, name: string, value: string): string {
  if (!isToken(name)) throw refused(step, `has the name ${JSON.stringify(name)}, which is not a valid field name`);
  const octets = wireText(value);
  if (!VALUE.test(octets)) {
    throw refused(step, `has a value of ${name} with a character that is not allowed in a header field`);
  }
  return octets;
}

/** Fields of a synthetic response; the engine writes the framing. Throws 400 for invalid ones. */
function checkedFields(pairs: readonly (readonly [string, string])[], path: string): RawFields {
  const fields: RawFields = [];
  for (const [name, value] of pairs) {
    const octets = checkedValue({ path }, name, value);
    if (!/^(?:content-length|transfer-encoding)$/i.test(name)) fields.push(name, octets);
  }
  return fields;
}

/** Percent-encodes characters that are not allowed in a request target, as browsers do. */
function targetText(step: EditStep, target: string): string {
  const plain = target
    .toWellFormed()
    .replace(/[^\x21-\x7e]+/gu, encodeURIComponent)
    .replaceAll("#", "%23");
  if (plain.length > 65_536) throw refused(step, "is too long");
  return plain;
}

function sameList(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((value, index) => value === right[index]);
}

function isUnchanged(given: GivenBody, { text, bytes }: EditableBody): boolean {
  return given.form === "text" ? given.text === text?.value : given.bytes.equals(bytes);
}

function refused(step: { readonly path: string }, message: string): ApiError {
  return validationError([{ path: step.path, message }]);
}

/** Replaces every match of a user's pattern; throws 400 for an invalid pattern or replacement. */
function replaceMatches(text: string, source: string, replacement: string, path: string): string {
  const check = checkPattern(source);
  if (!check.ok) {
    throw validationError([{ path, message: `${check.error.message}, at character ${check.error.start + 1}` }]);
  }
  const pattern = compilePattern(source);
  const read = readReplacement(replacement, pattern);
  if (!read.ok) {
    throw validationError([
      {
        path: path.replace(/[^/]*$/, "replacement"),
        message: `${read.error.message}, at character ${read.error.start + 1}`,
      },
    ]);
  }
  const replaced = pattern.replaceAll(text, read.replacement);
  if (replaced === "gave-up") throw new ApiError("VALIDATION_ERROR", `${path}: takes too long with this text`);
  return replaced.text;
}
