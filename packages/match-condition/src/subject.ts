/** What a body gives that was not waited for: a condition that depends on it cannot be decided yet. */
export const NOT_READ: unique symbol = Symbol("not read");

/**
 * The text of a body, content codings undone and characters decoded; undefined when there is no body or it is no text.
 */
export type BodyText = string | undefined | typeof NOT_READ;

/**
 * What a condition sees of an exchange. The properties are at hand; methods stand for material that has to be made and
 * are called only when a condition asks for it. A record of the query language is one when it is given a phase.
 */
export interface MatchSubject {
  /** Which message passes by: the request before it is sent, or the answer before it is delivered. */
  readonly phase: "request" | "response";
  /** Method token as sent. */
  readonly method: string;
  readonly scheme: string;
  /** Lower-case name or address, no brackets. */
  readonly host: string;
  /** Effective port, the scheme's default included. */
  readonly port: number;
  /** Path without query, as sent. */
  readonly path: string;
  /** Query without the leading `?`; empty when there is none. */
  readonly query: string;
  /** The full URL as shown to users: default ports left out. */
  readonly url: string;
  /** Undefined in the request phase. */
  readonly status: number | undefined;
  /** Header fields of the request as a flat list: name, value, name, value. */
  requestFields(): readonly string[];
  /** Header fields of the answer as a flat list; empty in the request phase. */
  responseFields(): readonly string[];
  requestText(): BodyText;
  responseText(): BodyText;
}
