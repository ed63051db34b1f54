import type { ConfigDocument } from "@headworks/gateway-contract";

const OWN_PATHS: ReadonlySet<string> = new Set(["/healthz", "/readyz"]);
const METRICS_PATH = "/metrics";

/** Whether the gateway serves a path itself, before routing; `/metrics` only if a listener has it. */
export function isOwnPath(path: string, { listeners = [] }: Partial<Pick<ConfigDocument, "listeners">>): boolean {
  return OWN_PATHS.has(path) || (path === METRICS_PATH && listeners.some(({ metrics }) => metrics === true));
}
