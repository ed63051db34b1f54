import type { ConfigDocument, Listener } from "@headworks/gateway-contract";
import { parseBind } from "./check-listeners.ts";

/**
 * The plain-text listener of `GATEWAY_BIND` that replaces all listeners of documents, without policies or
 * authorization. Undefined if not set. Throws a readable error for an invalid address.
 */
export function onlyListenerOf(environment: Readonly<Record<string, string | undefined>>): Listener | undefined {
  const text = environment["GATEWAY_BIND"];
  if (text === undefined || text === "") return undefined;
  const bind = parseBind(text);
  if (bind === undefined) {
    throw new Error(
      `GATEWAY_BIND must be an address and a port, such as 127.0.0.1:8080 or [::1]:8080; it is "${text}"`,
    );
  }
  return { name: "bind", ...bind };
}

/** Replaces the document's listeners; routes for any listener apply to it. No change if undefined. */
export function withOnlyListener(document: ConfigDocument, listener: Listener | undefined): ConfigDocument {
  if (listener === undefined) return document;
  const routes = document.routes.map((route) => {
    if (route.match.listener === undefined) return route;
    const { listener: _left, ...match } = route.match;
    return { ...route, match };
  });
  return { ...document, listeners: [listener], routes };
}
