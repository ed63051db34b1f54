import { useSyncExternalStore } from "react";

/** Current location: path without a trailing slash, and query parameters. */
export interface AppLocation {
  readonly path: string;
  readonly params: URLSearchParams;
}

const listeners = new Set<() => void>();
let current = read();

function read(): AppLocation {
  const path = location.pathname.replace(/\/+$/u, "");
  return { path: path === "" ? "/" : path, params: new URLSearchParams(location.search) };
}

function update(): void {
  current = read();
  for (const listener of listeners) listener();
}

addEventListener("popstate", update);

/** The current location; re-renders on change. */
export function useLocation(): AppLocation {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
}

/** Navigates to a path of this app, with optional query and anchor. `replace` adds no history entry. */
export function navigate(address: string, options: { readonly replace?: boolean } = {}): void {
  const next = new URL(address, location.origin);
  if (next.origin !== location.origin) return;
  const target = next.pathname + next.search + next.hash;
  if (target === location.pathname + location.search + location.hash) return;
  if (options.replace === true) history.replaceState(null, "", target);
  else history.pushState(null, "", target);
  update();
}

/** Changes query parameters of the current location; null removes one. */
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
