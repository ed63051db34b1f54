import { useSyncExternalStore } from "react";

/** Where the page is: path without a slash at its end, and query parameters. */
export interface Place {
  readonly path: string;
  readonly params: URLSearchParams;
}

const listeners = new Set<() => void>();
let place = read();

function read(): Place {
  const path = location.pathname.replace(/\/+$/u, "");
  return { path: path === "" ? "/" : path, params: new URLSearchParams(location.search) };
}

function update(): void {
  place = read();
  for (const listener of listeners) listener();
}

addEventListener("popstate", update);

/** The current place; renders again when it changes. */
export function usePlace(): Place {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => place,
  );
}

/** Goes to an address of this app: a path with an optional query and anchor. `replace` leaves no step in the history. */
export function navigate(address: string, options: { readonly replace?: boolean } = {}): void {
  const next = new URL(address, location.origin);
  if (next.origin !== location.origin) return;
  const target = next.pathname + next.search + next.hash;
  if (target === location.pathname + location.search + location.hash) return;
  if (options.replace === true) history.replaceState(null, "", target);
  else history.pushState(null, "", target);
  update();
}

/** Changes query parameters of the current place; null removes one. */
export function setParams(
  changes: Readonly<Record<string, string | null>>,
  options: { readonly replace?: boolean } = {},
): void {
  const params = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") params.delete(name);
    else params.set(name, value);
  }
  const text = params.toString();
  navigate(`${location.pathname}${text === "" ? "" : `?${text}`}`, options);
}
