/** A body that was not read: a condition that depends on it cannot be decided yet. */
export const NOT_READ: unique symbol = Symbol("not read");

/** The decoded text of a body; undefined when there is none or it is binary. */
export type BodyText = string | undefined | typeof NOT_READ;

/**
 * The view of an exchange for conditions. Properties are cheap; methods may do work and are called only when needed. A
 * record of the query language is a subject when given a phase.
 */
export interface MatchSubject {
  /** The message being evaluated: the request before it is sent, or the response before it is delivered. */
  readonly phase: "request" | "response";
  readonly method: string;
  readonly scheme: string;
  /** Lower-case name or address, without brackets. */
  readonly host: string;
  /** Effective port, including the scheme's default. */
  readonly port: number;
  /** As sent, without query. */
  readonly path: string;
  /** Without the leading `?`; empty when there is none. */
  readonly query: string;
  /** The full URL in display form, without default ports. */
  readonly url: string;
  readonly status: number | undefined;
  /** Flat list: name, value, name, value. */
  requestFields(): readonly string[];
  /** Flat list; empty in the request phase. */
  responseFields(): readonly string[];
  requestText(): BodyText;
  responseText(): BodyText;
}
