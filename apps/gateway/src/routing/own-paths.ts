import type { ConfigDocument } from "@headworks/gateway-contract";

const OWN_PATHS: ReadonlySet<string> = new Set(["/healthz", "/readyz"]);
const METRICS_PATH = "/metrics";

/** Whether the gateway answers a path itself, before routes are looked at; that of the metrics where a listener has them. */
export function isOwnPath(path: string, { listeners = [] }: Partial<Pick<ConfigDocument, "listeners">>): boolean {
  return OWN_PATHS.has(path) || (path === METRICS_PATH && listeners.some(({ metrics }) => metrics === true));
}
