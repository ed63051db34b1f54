// Tested by check-routes.test.ts
const OWN_PATHS: ReadonlySet<string> = new Set(["/healthz", "/readyz", "/metrics"]);

/** Whether the gateway answers a path itself, before routes are looked at. */
export function isOwnPath(path: string): boolean {
  return OWN_PATHS.has(path);
}
