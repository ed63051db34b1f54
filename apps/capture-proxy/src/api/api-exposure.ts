import { isLoopback } from "@headworks/host-patterns";

/**
 * Why an API on this address must not start, or undefined when it may: without authentication everybody who
 * reaches the address reads the captured passwords. `isInsecureAllowed` is `--insecure-api`.
 */
export function apiExposureProblem(options: {
  readonly apiHost: string;
  readonly isAuthenticated: boolean;
  readonly isInsecureAllowed: boolean;
}): string | undefined {
  const { apiHost, isAuthenticated, isInsecureAllowed } = options;
  if (isAuthenticated || isInsecureAllowed || apiHost === "localhost" || isLoopback(apiHost)) return undefined;
  return `The API would be open to everybody who can reach ${apiHost}: bind it to 127.0.0.1 (--api-host), or pass --insecure-api if the network is trusted`;
}
