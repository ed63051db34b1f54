import type { TestGateway } from "./gateway-rig.ts";

/** An admin section without TLS, on a port of the system's choice. */
export const ADMIN = { bind: "127.0.0.1:0" };
/** What lets the admin API of {@link ADMIN} open. */
export const DEV = { environment: { GATEWAY_ADMIN_DEV: "1" } };
export const listeners = [{ name: "public", address: "127.0.0.1", port: 0 }];

/** An answer of the admin API that was read to its end. */
export interface AdminResponse {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
  /** The body as JSON; each member has to be given its type. */
  json(): Record<string, never>;
}

/** Calls the admin API over plain HTTP; a body is YAML or JSON unless its type is given. */
export async function call(gateway: TestGateway, path: string, init: RequestInit = {}): Promise<AdminResponse> {
  const type = init.body === undefined ? {} : { "content-type": "application/yaml" };
  const headers = { ...type, ...(init.headers as Record<string, string> | undefined) };
  const response = await fetch(`${gateway.gateway.adminUrl}${path}`, { ...init, headers });
  const text = await response.text();
  return {
    status: response.status,
    text,
    headers: response.headers,
    json: () => JSON.parse(text) as Record<string, never>,
  };
}
