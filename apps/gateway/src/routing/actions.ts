import type { Action, Route } from "@headworks/gateway-contract";
import { wireText, type RawFields } from "@headworks/http1";
import type { Response, Refusal } from "#request/phases.ts";

/** The parts of a request that a response may depend on; a `RequestContext` has them. */
export interface ResponseRequest {
  readonly target: string;
  readonly authority: string | undefined;
}

/** Creates the whole response of a route without an upstream. */
export type ResponseAction = (request: ResponseRequest) => Response | Refusal;

type RedirectAction = Extract<Action, { type: "redirect" }>;
type RespondAction = Extract<Action, { type: "respond" }>;

/** Compiles the action of a redirect or respond route. Throws a TypeError for a proxy route. */
export function compileResponseAction(route: Route): ResponseAction {
  const { action } = route;
  if (action.type === "redirect") return compileRedirect(action);
  if (action.type === "respond") return compileRespond(action);
  throw new TypeError(`route ${route.name} is a proxy route and has no response of its own`);
}

const WITHOUT_HOST: Refusal = { code: "bad_request", message: "The request does not say for which host it is" };
const HEADER_SAFE = /^[!-~]+$/;

/**
 * A redirect to `scheme://host:port/path`. Without a host it stays on the request's host, and names it only if the
 * scheme or the port changes; the request's port is then dropped, since it belongs to the old scheme. Without a path,
 * the request's path and query are kept. The body is empty.
 */
function compileRedirect(action: RedirectAction): ResponseAction {
  const { status, path } = action;
  const scheme = action.scheme === undefined ? "" : `${action.scheme}:`;
  const port = action.port === undefined ? "" : `:${action.port}`;
  const fixed = action.host === undefined ? undefined : `${scheme}//${wireText(action.host)}${port}`;
  const namesHost = fixed !== undefined || action.scheme !== undefined || action.port !== undefined;
  return ({ target, authority }) => {
    const tail = path ?? target;
    let location = (fixed ?? "") + (namesHost ? tail : onSameHost(tail));
    if (namesHost && fixed === undefined) {
      if (authority === undefined) return WITHOUT_HOST;
      location = `${scheme}//${withoutPort(authority)}${port}${tail}`;
    }
    if (!HEADER_SAFE.test(location)) return { code: "invalid_redirect_target" };
    return { status, fields: ["Location", location], body: "" };
  };
}

/** A reference that begins with `//` would name another host (RFC 3986 section 4.2); a leading `/.` keeps it a path. */
function onSameHost(tail: string): string {
  return tail.startsWith("//") ? `/.${tail}` : tail;
}

function withoutPort(authority: string): string {
  return authority.replace(/:[0-9]*$/, "");
}

/** Statuses without content that a type could describe (RFC 9110 sections 15.3.5, 15.3.6 and 15.4.5). */
const WITHOUT_CONTENT: ReadonlySet<number> = new Set([204, 205, 304]);

/** A fixed response, plain text unless its headers say otherwise. */
function compileRespond(action: RespondAction): ResponseAction {
  const { status } = action;
  const text = action.body ?? "";
  const fields: RawFields = [];
  let hasType = false;
  for (const [name, value] of Object.entries(action.headers ?? {})) {
    fields.push(name, wireText(value));
    hasType ||= name.toLowerCase() === "content-type";
  }
  if (!hasType && !WITHOUT_CONTENT.has(status)) fields.push("Content-Type", plainType(text));
  const body = text === "" ? "" : Buffer.from(text, "utf8");
  // Copied because decorators change the fields of a response in place.
  return () => ({ status, fields: [...fields], body });
}

function plainType(text: string): string {
  return wireText(text) === text ? "text/plain" : "text/plain; charset=utf-8";
}
