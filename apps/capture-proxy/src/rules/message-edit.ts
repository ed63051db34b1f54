import type { RuleKind } from "@headworks/capture-contract";
import { fieldValue, type RawFields } from "@headworks/http1";
import type { Content, Exchange, RequestMessage, ResponseMessage } from "#exchange/exchange.ts";
import type { SyntheticResponse } from "#exchange/phases.ts";
import { EditedBody } from "./edited-body.ts";
import { withField } from "./header-edit.ts";

export type EditedExchange = Pick<
  Exchange,
  | "request"
  | "response"
  | "originalRequest"
  | "requestHasBody"
  | "changeRequest"
  | "changeResponse"
  | "requestContent"
  | "responseContent"
  | "setRequestContent"
  | "setResponseContent"
  | "addTrace"
>;

export type Phase = "request" | "response";

export interface BodyLimits {
  /** Maximum size of the decoded body. */
  readonly bodyBytes: number;
  readonly waitMs: number;
  readonly after: (delayMs: number, callback: () => void) => () => void;
}

interface Step {
  readonly ruleId: string;
  readonly ruleName: string;
  readonly words: string[];
  hasChanged: boolean;
}

export type Apply = (edit: MessageEdit) => void | Promise<unknown>;

/** A message while rules edit it: gives actions access to its parts and records their changes. */
export class MessageEdit {
  readonly phase: Phase;
  readonly body: EditedBody;
  /** Set by an action that responds itself. */
  ownResponse: SyntheticResponse | undefined;
  readonly #kind: RuleKind;
  readonly #exchange: EditedExchange;
  readonly #respondedBy: string | undefined;
  readonly #steps: Step[] = [];
  #step: Step | undefined;
  #obstacle: { readonly reason: string | undefined } | undefined;
  /** The last rule that changed the body; its trace also gets changes of the content coding. */
  #bodyStep: Step | undefined;

  constructor(kind: RuleKind, exchange: EditedExchange, phase: Phase, limits: BodyLimits, respondedBy?: string) {
    this.#kind = kind;
    this.phase = phase;
    this.#exchange = exchange;
    this.#respondedBy = respondedBy;
    this.body = new EditedBody(
      {
        noBodyReason: () => noBodyReason(exchange, phase),
        obstacle: () => this.#bodyObstacle(),
        isBodiless: () => phase === "request" && !exchange.requestHasBody,
        fields: () => this.fields,
        content: (limitBytes) => contentInTime(exchange, phase, limitBytes, limits),
      },
      limits.bodyBytes,
    );
  }

  get request(): Readonly<RequestMessage> {
    return this.#exchange.request;
  }

  get response(): Readonly<ResponseMessage> {
    const { response } = this.#exchange;
    if (response === undefined) throw new TypeError("There is no response yet");
    return response;
  }

  get fields(): Readonly<RawFields> {
    return this.phase === "request" ? this.request.fields : this.response.fields;
  }

  get exchange(): EditedExchange {
    return this.#exchange;
  }

  get isOwnResponse(): boolean {
    return this.#respondedBy !== undefined && this.#step?.ruleId === this.#respondedBy;
  }

  changeRequest(): RequestMessage {
    return this.#exchange.changeRequest();
  }

  changeResponse(): ResponseMessage {
    return this.#exchange.changeResponse();
  }

  setFields(fields: RawFields): void {
    const message = this.phase === "request" ? this.changeRequest() : this.changeResponse();
    message.fields = fields;
  }

  /** Judged by the original message: a stream stays one even if a rule changes its type. */
  #bodyObstacle(): string | undefined {
    this.#obstacle ??= { reason: obstacle(this.#exchange, this.phase) };
    return this.#obstacle.reason;
  }

  begin(ruleId: string, ruleName: string): void {
    this.#bodyObstacle();
    this.#step = { ruleId, ruleName, words: [], hasChanged: false };
    this.#steps.push(this.#step);
  }

  changed(words: string): void {
    if (this.#step === undefined) return;
    this.#step.words.push(words);
    this.#step.hasChanged = true;
  }

  changedBody(words: string): void {
    this.changed(words);
    this.#bodyStep = this.#step;
  }

  /** Waits until the body can be replaced; false when it cannot. */
  async canReplaceBody(): Promise<boolean> {
    await this.body.settle();
    return this.phase === "response" || !this.body.isForwarded;
  }

  /**
   * Replaces the body with bytes without content coding, or with text in the message's charset. Returns false, noted in
   * the trace, when the original is already being forwarded.
   */
  async replaceBody(body: Buffer | string): Promise<boolean> {
    if (!(await this.canReplaceBody())) {
      this.note("the body is too large or too slow to be replaced");
      return false;
    }
    if (typeof body === "string") this.body.replaceByText(body);
    else this.body.replace(body);
    this.#bodyStep = this.#step;
    return true;
  }

  /** The changes of the current rule so far. */
  get changesOfRule(): readonly string[] {
    return this.#step?.hasChanged === true ? [...this.#step.words] : [];
  }

  /** Records why something was not changed. */
  note(words: string): void {
    this.#step?.words.push(words);
  }

  /** Encodes the new body and hands over the trace, after all rules. */
  finish(): void | Promise<void> {
    if (!this.body.isChanged || this.ownResponse !== undefined) return this.#report();
    return this.#finishBody();
  }

  async #finishBody(): Promise<void> {
    const { bytes, fields, words } = await this.body.finish();
    this.setFields(fields);
    if (this.phase === "request") this.#exchange.setRequestContent(bytes);
    else if (this.body.isForwarded) this.ownResponse = this.#responseWith(bytes, fields);
    else this.#exchange.setResponseContent(bytes);
    this.#bodyStep?.words.push(...words);
    this.#report();
  }

  /** The response as a synthetic one; the rest of the origin's is discarded. */
  #responseWith(body: Buffer, fields: Readonly<RawFields>): SyntheticResponse {
    const { status, reason } = this.response;
    return { status, reason, fields: withField(fields, "Content-Length", String(body.length), false), body };
  }

  #report(): void {
    for (const { ruleId, ruleName, words, hasChanged } of this.#steps) {
      const changes = hasChanged ? words : [...words, "matched, changed nothing"];
      this.#exchange.addTrace({ kind: this.#kind, ruleId, ruleName, phase: this.phase, changes });
    }
  }
}

function noBodyReason({ request, response, requestHasBody }: EditedExchange, phase: Phase): string | undefined {
  if (phase === "request") {
    const isSwitch = request.scheme === "ws" || request.scheme === "wss" || request.scheme === "tcp";
    if (isSwitch || request.method === "CONNECT") return "a request that opens a tunnel has no body to edit";
    return BODILESS.has(request.method) && !requestHasBody ? `a ${request.method} request has no body` : undefined;
  }
  if (request.method === "HEAD") return "a response to HEAD has no body to edit";
  const status = response?.status ?? 0;
  return status < 200 || status === 204 || status === 304 ? `a ${status} response has no body to edit` : undefined;
}

/** Rules never add a body to these methods: origins would reject it. */
const BODILESS = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

/** Types with an open-ended body: waiting for the end would block them. */
const STREAMS = ["text/event-stream", "multipart/x-mixed-replace", "application/grpc"];

function obstacle({ request, response, requestHasBody }: EditedExchange, phase: Phase): string | undefined {
  const fields = phase === "request" ? request.fields : (response?.fields ?? []);
  const type = fieldValue(fields, "content-type")?.trimStart().toLowerCase() ?? "";
  const stream = STREAMS.find((name) => type.startsWith(name));
  if (stream !== undefined) return `a ${stream} stream is not buffered and is forwarded unchanged`;
  if (phase === "response" && response?.status === 206) {
    return "a partial response (206) is forwarded unchanged: remove Range from the request to edit the whole body";
  }
  return phase === "request" && !requestHasBody ? "the request has no body" : undefined;
}

/** The whole body within the time limit, so that an endless body is not held back forever. */
function contentInTime(
  exchange: EditedExchange,
  phase: Phase,
  limitBytes: number,
  { waitMs, after }: BodyLimits,
): Promise<Content | { readonly kind: "late" }> {
  const content = phase === "request" ? exchange.requestContent(limitBytes) : exchange.responseContent(limitBytes);
  return new Promise((resolve, reject) => {
    const stop = after(waitMs, () => resolve({ kind: "late" }));
    content.then(
      (value) => {
        stop();
        resolve(value);
      },
      (error: unknown) => {
        stop();
        reject(error instanceof Error ? error : new Error(String(error)));
      },
    );
  });
}
