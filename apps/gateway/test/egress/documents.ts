import { Secret } from "@headworks/contract-kit";
import type { ConfigDocument, Issue } from "@headworks/gateway-contract";
import type { Logger } from "pino";
import type { CheckScope, Clock, CompileScope, GatewaySlice } from "#slice.ts";

/** A document with what a test is about, and nothing else. */
export function documentWith(parts: Partial<ConfigDocument>): ConfigDocument {
  return {
    gateway: {},
    listeners: [],
    upstreams: [],
    services: [],
    routes: [],
    consumers: [],
    policies: [],
    webhooks: [],
    admin: undefined,
    analytics: undefined,
    ...parts,
  };
}

export const realClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };

/** Secrets by reference text; a reference that is not in it cannot be resolved, other text stands for itself. */
export type Secrets = Readonly<Record<string, string>>;

function reveal(secrets: Secrets, text: string): Secret | undefined {
  if (!text.startsWith("${")) return new Secret(text);
  const value = secrets[text];
  return value === undefined ? undefined : new Secret(value);
}

/** What a slice says about a document, as `code place` lines; the messages are kept beside. */
export function issuesOf(
  slice: GatewaySlice,
  document: ConfigDocument,
  secrets: Secrets = {},
): { readonly codes: string[]; readonly messages: string[] } {
  const codes: string[] = [];
  const messages: string[] = [];
  const note = (code: Issue["code"], place: readonly (string | number)[], message: string): void => {
    codes.push(`${code} ${place.join(".")}`);
    messages.push(message);
  };
  const scope: CheckScope = {
    clock: realClock,
    secret: (text) => reveal(secrets, text),
    readFile: () => undefined,
  };
  slice.check?.(document, { error: note, warning: note }, scope);
  return { codes, messages };
}

let generation = 0;

/** Compiles a document with a slice and publishes it; answers what was compiled. */
export function publish(
  slice: GatewaySlice,
  document: ConfigDocument,
  log: Logger,
  secrets: Secrets = {},
): ReturnType<NonNullable<GatewaySlice["compile"]>> {
  generation += 1;
  const scope: CompileScope = {
    generation,
    clock: realClock,
    log,
    secret: (text) => reveal(secrets, text) ?? new Secret(""),
    readFile: () => Buffer.alloc(0),
  };
  const compiled = slice.compile?.(document, scope) ?? {};
  compiled.published?.();
  return compiled;
}
