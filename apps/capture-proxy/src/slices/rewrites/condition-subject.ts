// Tested by ../../../test/rewrites-live.test.ts
import { NOT_READ, type BodyText, type MatchSubject } from "@headworks/match-condition";
import { exchangeUrl } from "#exchange/exchange.ts";
import type { RequestMessage } from "#exchange/exchange.ts";
import type { MessageEdit } from "./message-edit.ts";
import { splitQuery } from "./url-edit.ts";

/** What conditions see while rules run: the messages as they are at that moment. */
export class ConditionSubject implements MatchSubject {
  readonly #edit: MessageEdit;
  readonly #requestOf: () => Readonly<RequestMessage>;
  readonly #earlierText: BodyText;

  /** `earlierText`: the request's body, for the answer's phase. */
  constructor(edit: MessageEdit, requestOf: () => Readonly<RequestMessage>, earlierText: BodyText) {
    this.#edit = edit;
    this.#requestOf = requestOf;
    this.#earlierText = earlierText;
  }

  get phase(): "request" | "response" {
    return this.#edit.phase;
  }

  get method(): string {
    return this.#requestOf().method;
  }

  get scheme(): string {
    return this.#requestOf().scheme;
  }

  get host(): string {
    return this.#requestOf().host;
  }

  get port(): number {
    return this.#requestOf().port;
  }

  get path(): string {
    return splitQuery(this.#requestOf().path)[0];
  }

  get query(): string {
    return splitQuery(this.#requestOf().path)[1] ?? "";
  }

  get url(): string {
    return exchangeUrl(this.#requestOf());
  }

  get status(): number | undefined {
    return this.phase === "request" ? undefined : this.#edit.response.status;
  }

  requestFields(): readonly string[] {
    return this.#requestOf().fields;
  }

  responseFields(): readonly string[] {
    return this.phase === "request" ? [] : this.#edit.response.fields;
  }

  requestText(): BodyText {
    return this.phase === "request" ? this.#ownText() : this.#earlierText;
  }

  responseText(): BodyText {
    return this.phase === "request" ? undefined : this.#ownText();
  }

  #ownText(): BodyText {
    const { body } = this.#edit;
    return body.isLoaded ? body.text : NOT_READ;
  }
}
