import { NOT_READ, type BodyText, type MatchSubject } from "@headworks/match-condition";
import { type Exchange, exchangeUrl, type RequestMessage } from "#exchange/exchange.ts";

export interface BodyTexts {
  readonly request: BodyText;
  readonly response: BodyText;
}

const UNREAD: BodyTexts = { request: NOT_READ, response: NOT_READ };

/** The subject of rule conditions: the current messages of an exchange, including changes of earlier rules. */
export class ExchangeSubject implements MatchSubject {
  readonly phase: "request" | "response";
  readonly #exchange: Pick<Exchange, "request" | "response">;
  readonly #texts: BodyTexts;
  readonly #request: Readonly<RequestMessage> | undefined;

  constructor(
    exchange: Pick<Exchange, "request" | "response">,
    phase: "request" | "response",
    texts: BodyTexts = UNREAD,
    request?: Readonly<RequestMessage>,
  ) {
    this.phase = phase;
    this.#exchange = exchange;
    this.#texts = texts;
    this.#request = request;
  }

  get #message(): Readonly<RequestMessage> {
    return this.#request ?? this.#exchange.request;
  }

  get method(): string {
    return this.#message.method;
  }

  get scheme(): string {
    return this.#message.scheme;
  }

  get host(): string {
    return this.#message.host;
  }

  get port(): number {
    return this.#message.port;
  }

  get path(): string {
    const { path } = this.#message;
    const mark = path.indexOf("?");
    return mark === -1 ? path : path.slice(0, mark);
  }

  get query(): string {
    const { path } = this.#message;
    const mark = path.indexOf("?");
    return mark === -1 ? "" : path.slice(mark + 1);
  }

  get url(): string {
    return exchangeUrl(this.#message);
  }

  get status(): number | undefined {
    return this.phase === "request" ? undefined : this.#exchange.response?.status;
  }

  requestFields(): readonly string[] {
    return this.#message.fields;
  }

  responseFields(): readonly string[] {
    return this.phase === "request" ? [] : (this.#exchange.response?.fields ?? []);
  }

  requestText(): BodyText {
    return this.#texts.request;
  }

  responseText(): BodyText {
    return this.phase === "request" ? undefined : this.#texts.response;
  }
}
