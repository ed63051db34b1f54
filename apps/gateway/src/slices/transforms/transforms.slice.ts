import type { ConfigDocument, FieldChanges, Route, Transforms } from "@headworks/gateway-contract";
import { parseUrlEncoded } from "@headworks/http-fields";
import { type RawFields, removeField, setField, wireText } from "@headworks/http1";
import { carriesAnId, dashedName, identityKind } from "#request/forwarding-rules.ts";
import type { Decorator, RequestChange } from "#request/context.ts";
import type { CompileScope, GatewaySlice, IssueReport } from "#slice.ts";

/** Hop-by-hop and framing fields, which the gateway writes itself (RFC 9110, 7.6.1). */
const CONNECTION_FIELDS: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Identity fields trusted by upstreams; a rename must not let clients set them. */
const IDENTITY_FIELDS: ReadonlySet<string> = new Set(["x-correlation-id", "x-request-id"]);

const isIdentity = (name: string): boolean => {
  const dashed = dashedName(name.toLowerCase());
  return IDENTITY_FIELDS.has(dashed) || dashed.startsWith("x-consumer-") || identityKind(dashed) !== undefined;
};

const connectionProblem = (name: string): string | undefined =>
  CONNECTION_FIELDS.has(name.toLowerCase())
    ? `${name} belongs to the connection; the gateway writes it itself`
    : undefined;

const encoded = (name: string, value: string): string => `${encodedPart(name)}=${encodedPart(value)}`;

/** Lone surrogates cannot be encoded and become U+FFFD. */
const encodedPart = (text: string): string => encodeURIComponent(text.toWellFormed());

/** Transforms request headers and queries, and headers of the action's responses. */
export const transforms: GatewaySlice = {
  name: "transforms",
  check: checkTransforms,
  compile: (_document, scope) => {
    const secret = (text: string): ReturnType<CompileScope["secret"]> => scope.secret(text);
    return {
      requestChangeFor: (route) => requestChangeFor(route, secret),
      decoratorFor: (route) => decoratorFor(route, secret),
    };
  },
};

function requestChangeFor({ transforms: block }: Route, secret: CompileScope["secret"]): RequestChange | undefined {
  const changeFields = compileFieldChanges(block?.request?.headers, secret);
  const changeTarget = compileQueryChanges(block?.request?.query);
  if (changeFields === undefined && changeTarget === undefined) return undefined;
  return {
    ...(changeFields === undefined ? {} : { changeFields }),
    ...(changeTarget === undefined ? {} : { changeTarget }),
  };
}

function decoratorFor({ transforms: block }: Route, secret: CompileScope["secret"]): Decorator | undefined {
  const change = compileFieldChanges(block?.response?.headers, secret);
  return change === undefined
    ? undefined
    : { on: "action-responses", decorate: (_request, head) => change(head.fields) };
}

/** Compiles set, add, rename and remove of fields, applied in this order; undefined without changes. */
export function compileFieldChanges(
  changes: FieldChanges | undefined,
  secret: CompileScope["secret"],
): ((fields: RawFields) => void) | undefined {
  if (changes === undefined) return undefined;
  const resolved = (values: Readonly<Record<string, string>> = {}): [string, string][] =>
    Object.entries(values).map(([name, text]) => [name, wireText(secret(text).reveal())]);
  const set = resolved(changes.set);
  const added = resolved(changes.add).flat();
  const renamed = Object.entries(changes.rename ?? {}).map(([from, to]) => [from.toLowerCase(), to] as const);
  const removed = (changes.remove ?? []).map((name) => name.toLowerCase());
  if (set.length + added.length + renamed.length + removed.length === 0) return undefined;
  return (fields) => {
    for (const [name, value] of set) setField(fields, name, value);
    fields.push(...added);
    for (const [from, to] of renamed) renameField(fields, from, to);
    for (const name of removed) removeField(fields, name);
  };
}

/** Each line keeps its position and value. */
function renameField(fields: RawFields, from: string, to: string): void {
  for (let at = 0; at < fields.length; at += 2) {
    if (fields[at]?.toLowerCase() === from) fields[at] = to;
  }
}

type QueryChanges = NonNullable<NonNullable<Transforms["request"]>["query"]>;

/** An encoded query parameter. */
interface Piece {
  name: string;
  text: string;
}

/**
 * Compiles set, add, rename and remove of query parameters, applied in this order. Names are compared decoded, so that
 * encoding cannot bypass a rule; other parameters stay byte-identical. Undefined without changes.
 */
export function compileQueryChanges(changes: QueryChanges | undefined): ((target: string) => string) | undefined {
  if (changes === undefined) return undefined;
  const steps = [
    ...Object.entries(changes.set ?? {}).map(([name, value]) => setting(name, encoded(name, value))),
    ...Object.entries(changes.add ?? {}).map(([name, value]) => adding(name, encoded(name, value))),
    ...Object.entries(changes.rename ?? {}).map(([from, to]) => renaming(from, to)),
    ...(changes.remove ?? []).map(
      (name) => (pieces: readonly Piece[]) => pieces.filter((piece) => piece.name !== name),
    ),
  ];
  if (steps.length === 0) return undefined;
  return (target) => {
    const mark = target.indexOf("?");
    const path = mark === -1 ? target : target.slice(0, mark);
    let pieces: readonly Piece[] = mark === -1 ? [] : piecesOf(target.slice(mark + 1));
    for (const step of steps) pieces = step(pieces);
    return pieces.length === 0 ? path : `${path}?${pieces.map(({ text }) => text).join("&")}`;
  };
}

type Step = (pieces: readonly Piece[]) => readonly Piece[];

function piecesOf(query: string): Piece[] {
  return parseUrlEncoded(query).map(({ name, rawName, rawValue }) => ({
    name,
    text: rawValue === undefined ? rawName : `${rawName}=${rawValue}`,
  }));
}

function setting(name: string, text: string): Step {
  return (pieces) => {
    const at = pieces.findIndex((piece) => piece.name === name);
    if (at === -1) return [...pieces, { name, text }];
    return pieces.flatMap((piece, index) => (index === at ? { name, text } : piece.name === name ? [] : piece));
  };
}

function adding(name: string, text: string): Step {
  return (pieces) => [...pieces, { name, text }];
}

function renaming(from: string, to: string): Step {
  return (pieces) =>
    pieces.map((piece) => {
      if (piece.name !== from) return piece;
      const equals = piece.text.indexOf("=");
      return { name: to, text: encodedPart(to) + (equals === -1 ? "" : piece.text.slice(equals)) };
    });
}

type FieldPath = readonly (string | number)[];

/** Rejects changes of fields that the gateway controls, and renames to identity fields. */
function checkTransforms(document: ConfigDocument, report: IssueReport): void {
  const responseProblem = (name: string): string | undefined =>
    carriesAnId(name, document.gateway)
      ? `${name} carries an id, which the gateway adds to every answer`
      : connectionProblem(name);
  for (const [index, { transforms, action }] of document.routes.entries()) {
    if (transforms === undefined) continue;
    const fieldPath = ["routes", index, "transforms"];
    const { request, response } = transforms;
    checkFields(request?.headers, connectionProblem, [...fieldPath, "request", "headers"], report);
    for (const [from, to] of Object.entries(request?.headers?.rename ?? {})) {
      if (!isIdentity(to)) continue;
      const message = `A client could choose its identity by sending ${from}: only the gateway may write ${to}`;
      report.error("bad_header", [...fieldPath, "request", "headers", "rename", from], message);
    }
    checkFields(response?.headers, responseProblem, [...fieldPath, "response", "headers"], report);
    if (request !== undefined && action.type !== "proxy") {
      const message = "Only requests of proxy routes can be changed: this route's action has no upstream";
      report.warning("unused", [...fieldPath, "request"], message);
    }
  }
}

/** `problemOf` returns the reason a field cannot be changed. */
function checkFields(
  changes: FieldChanges | undefined,
  problemOf: (name: string) => string | undefined,
  fieldPath: FieldPath,
  report: IssueReport,
): void {
  const check = (name: string, at: FieldPath): void => {
    const problem = problemOf(name);
    if (problem !== undefined) report.error("bad_header", [...fieldPath, ...at], problem);
  };
  for (const kind of ["set", "add"] as const) {
    for (const name of Object.keys(changes?.[kind] ?? {})) check(name, [kind, name]);
  }
  for (const [from, to] of Object.entries(changes?.rename ?? {})) {
    check(from, ["rename", from]);
    check(to, ["rename", from]);
  }
  for (const [index, name] of (changes?.remove ?? []).entries()) check(name, ["remove", index]);
}
