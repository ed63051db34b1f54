import { Secret } from "@headworks/contract-kit";
import { pino } from "pino";
import type { ConfigDocument, DocumentInput, Route } from "@headworks/gateway-contract";
import type { CheckScope, CompileScope, GatewaySlice } from "#slice.ts";
import { documentOf, issueNotes, routeWith } from "./routing/requests.ts";

export type RouteInput = NonNullable<DocumentInput["routes"]>[number];

/** A route over a prefix; it proxies to the service of its own name. */
export const proxied = (name: string, prefix = "/", more: Partial<RouteInput> = {}): RouteInput => ({
  name,
  service: name,
  match: { path: { type: "prefix", value: prefix } },
  action: { type: "proxy" },
  ...more,
});

/** A route that answers 200 with a text by itself. */
export const responding = (name: string, prefix = "/", more: Partial<RouteInput> = {}): RouteInput => ({
  name,
  match: { path: { type: "prefix", value: prefix } },
  action: { type: "respond", status: 200, body: `this is ${name}` },
  ...more,
});

/** What a slice's check says of a document with one route that has this, as `code place`. */
export function issuesOfRoute(slice: GatewaySlice, rest: Partial<Route>): string[] {
  return issuesOf(slice, documentOf([routeWith("r", { path: { type: "prefix", value: "/" } }, rest)]));
}

/** What a slice's check says of a document. */
export function issuesOf(slice: GatewaySlice, document: ConfigDocument): string[] {
  const { report, notes } = issueNotes();
  const scope: CheckScope = {
    clock: { now: () => 0, monotonic: () => 0 },
    secret: (text) => new Secret(text),
    readFile: () => undefined,
  };
  slice.check?.(document, report, scope);
  return notes;
}

/** What compiling asks for, with a clock of the test's. */
export function compileScope(clock: CompileScope["clock"] = { now: () => 0, monotonic: () => 0 }): CompileScope {
  return {
    generation: 1,
    clock,
    log: pino({ level: "silent" }),
    secret: (text) => new Secret(text),
    readFile: () => Buffer.alloc(0),
  };
}

/** The inside of an error body. */
export function errorOf(response: { readonly body: Buffer }): { readonly code: string; readonly message: string } {
  const { error } = JSON.parse(response.body.toString()) as { error: { code: string; message: string } };
  return error;
}
