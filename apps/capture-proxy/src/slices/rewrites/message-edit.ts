import { fieldValue } from "@headworks/http1";
import type { RawFields } from "@headworks/http1";
import type { Content, Exchange, RequestMessage, ResponseMessage } from "#exchange/exchange.ts";
import type { SyntheticResponse } from "#exchange/phases.ts";
import { EditedBody } from "./edited-body.ts";
import { withField } from "./header-edit.ts";

/** What rules need of an exchange; a dry run has one of its own. */
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

/** Bounds of reading a body. */
export interface BodyLimits {
  /** Of the body, content codings undone. */
  readonly bodyBytes: number;
  readonly waitMs: number;
  readonly after: (delayMs: number, callback: () => void) => () => void;
}

/** The rule whose actions run, and what they did so far. */
interface Step {
  readonly ruleId: string;
  readonly ruleName: string;
  readonly words: string[];
  hasChanged: boolean;
}

/** One message while rules change it: gives actions its parts, and keeps an account of what they did. */
export class MessageEdit {
  readonly phase: Phase;
  readonly body: EditedBody;
  /** Set by an action that answers by itself. */
  ownResponse: SyntheticResponse | undefined;
  readonly #exchange: EditedExchange;
  readonly #answeredBy: string | undefined;
  readonly #steps: Step[] = [];
  #step: Step | undefined;
  #obstacle: { readonly reason: string | undefined } | undefined;
  /** The rule that changed the body last; what coding it brings about is its doing. */
  #bodyStep: Step | undefined;

  /** `answeredBy`: the rule that gave this answer, if one did. */
  constructor(exchange: EditedExchange, phase: Phase, limits: BodyLimits, answeredBy?: string) {
    this.phase = phase;
    this.#exchange = exchange;
    this.#answeredBy = answeredBy;
    this.body = new EditedBody(
      {
        noBody: () => noBody(exchange, phase),
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

  /** The answer; only in its phase. */
  get response(): Readonly<ResponseMessage> {
    const { response } = this.#exchange;
    if (response === undefined) throw new TypeError("There is no answer yet");
    return response;
  }

  get fields(): Readonly<RawFields> {
    return this.phase === "request" ? this.request.fields : this.response.fields;
  }

  get exchange(): EditedExchange {
    return this.#exchange;
  }

  /** The rule whose actions run gave the answer it now sees. */
  get isOwnResponse(): boolean {
    return this.#answeredBy !== undefined && this.#step?.ruleId === this.#answeredBy;
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

  /** Asked of the message as it came: a stream that a rule calls text is still one. */
  #bodyObstacle(): string | undefined {
    this.#obstacle ??= { reason: obstacle(this.#exchange, this.phase) };
    return this.#obstacle.reason;
  }

  /** A rule matched: what follows is its doing. */
  begin(ruleId: string, ruleName: string): void {
    this.#bodyObstacle();
    this.#step = { ruleId, ruleName, words: [], hasChanged: false };
    this.#steps.push(this.#step);
  }

  /** Something was changed. */
  changed(words: string): void {
    if (this.#step === undefined) return;
    this.#step.words.push(words);
    this.#step.hasChanged = true;
  }

  /** The text of the body was changed; it is coded when all rules are through. */
  changedBody(words: string): void {
    this.changed(words);
    this.#bodyStep = this.#step;
  }

  /** Waits until another body can take the place of what came; false when that is not going to be. */
  async canReplaceBody(): Promise<boolean> {
    await this.body.settle();
    return this.phase === "response" || !this.body.hasPassed;
  }

  /**
   * Another body altogether: bytes without content coding, or text in the charset of the message. False: the body is on
   * its way already, which the trace says.
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

  /** Something was not changed, and why. */
  note(words: string): void {
    this.#step?.words.push(words);
  }

  /** All rules are through: the new body is coded, the trace is handed over. */
  finish(): void | Promise<void> {
    if (!this.body.isChanged || this.ownResponse !== undefined) return this.#report();
    return this.#finishBody();
  }

  async #finishBody(): Promise<void> {
    const { bytes, fields, words } = await this.body.finish();
    this.setFields(fields);
    if (this.phase === "request") this.#exchange.setRequestContent(bytes);
    else if (this.body.hasPassed) this.ownResponse = this.#responseWith(bytes, fields);
    else this.#exchange.setResponseContent(bytes);
    this.#bodyStep?.words.push(...words);
    this.#report();
  }

  /** The answer as an own one: nobody waits for the rest of what came. */
  #responseWith(body: Buffer, fields: Readonly<RawFields>): SyntheticResponse {
    const { status, reason } = this.response;
    return { status, reason, fields: withField(fields, "Content-Length", String(body.length), false), body };
  }

  #report(): void {
    for (const { ruleId, ruleName, words, hasChanged } of this.#steps) {
      const changes = hasChanged ? words : [...words, "matched, changed nothing"];
      this.#exchange.addTrace({ kind: "rewrite", ruleId, ruleName, phase: this.phase, changes });
    }
  }
}

function noBody({ request, response, requestHasBody }: EditedExchange, phase: Phase): string | undefined {
  if (phase === "request") {
    const isSwitch = request.scheme === "ws" || request.scheme === "wss" || request.scheme === "tcp";
    if (isSwitch || request.method === "CONNECT") return "a request that opens a tunnel has no body to edit";
    return BODILESS.has(request.method) && !requestHasBody ? `this ${request.method} has no body` : undefined;
  }
  if (request.method === "HEAD") return "an answer to HEAD has no body to edit";
  const status = response?.status ?? 0;
  return status < 200 || status === 204 || status === 304 ? `an answer ${status} has no body to edit` : undefined;
}

/** Methods whose requests get no body from a rule: origins would refuse them. */
const BODILESS = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

/** Types whose bodies are made of messages over time: to wait for their end would be to stop them. */
const STREAMS = ["text/event-stream", "multipart/x-mixed-replace", "application/grpc"];

function obstacle({ request, response, requestHasBody }: EditedExchange, phase: Phase): string | undefined {
  const fields = phase === "request" ? request.fields : (response?.fields ?? []);
  const type = fieldValue(fields, "content-type")?.trimStart().toLowerCase() ?? "";
  const stream = STREAMS.find((name) => type.startsWith(name));
  if (stream !== undefined) return `a stream of ${stream} is not held back and passes as it is`;
  if (phase === "response" && response?.status === 206) {
    return "an answer with a part of the content (206) passes as it is: remove Range from the request to edit all of it";
  }
  return phase === "request" && !requestHasBody ? "the request has no body" : undefined;
}

/** The whole body, unless it takes too long: a body that never ends must not be held back for ever. */
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
