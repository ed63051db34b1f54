import type { ConfigDocument, Listener } from "@headworks/gateway-contract";
import { parseBind } from "./check-listeners.ts";

/**
 * The one listener that `GATEWAY_BIND` puts in the place of all that documents name: in plain text, without policies or
 * authorization of its own. Undefined when it is not set. Throws an error with a sentence for what is no address.
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

/** The document with this listener alone, which routes for any listener are for; as it is without one. */
export function withOnlyListener(document: ConfigDocument, listener: Listener | undefined): ConfigDocument {
  if (listener === undefined) return document;
  const routes = document.routes.map((route) => {
    if (route.match.listener === undefined) return route;
    const { listener: _left, ...match } = route.match;
    return { ...route, match };
  });
  return { ...document, listeners: [listener], routes };
}
