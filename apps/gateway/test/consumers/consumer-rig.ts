import assert from "node:assert/strict";
import type { DocumentInput, Issue } from "@headworks/gateway-contract";
import type { SeenRequest } from "@headworks/testkit";
import { RejectedDocumentError } from "#gateway.ts";
import { startGateway, type TestGateway } from "../gateway-rig.ts";

export type RouteInput = NonNullable<DocumentInput["routes"]>[number];
export type ConsumerInput = NonNullable<DocumentInput["consumers"]>[number];

/** A route to the service `api` for everything below a path. */
export const proxied = (name: string, prefix = `/${name}`, more: Partial<RouteInput> = {}): RouteInput => ({
  name,
  service: "api",
  match: { path: { type: "prefix", value: prefix } },
  action: { type: "proxy" },
  ...more,
});

/** `open` takes everybody, `closed` asks for a consumer. */
export const OPEN_AND_CLOSED: RouteInput[] = [proxied("open"), proxied("closed", "/closed", { auth_required: true })];

/** A consumer with one API key. */
export const keyed = (name: string, key: string, more: Partial<ConsumerInput> = {}): ConsumerInput => ({
  name,
  credentials: [{ type: "api_key", key }],
  ...more,
});

/** Values of a field that an origin has seen. */
export function seenValues(request: SeenRequest | undefined, lowerName: string): string[] {
  const headers = request?.rawHeaders ?? [];
  return headers.filter((_, at) => at % 2 === 1 && headers[at - 1]?.toLowerCase() === lowerName);
}

/** No line of the log holds any of these texts, in any letter case. */
export function assertNotLogged(gateway: TestGateway, secrets: readonly string[]): void {
  const log = JSON.stringify(gateway.log).toLowerCase();
  assert.ok(gateway.log.length > 0, "something was logged at all");
  for (const secret of secrets) assert.equal(log.includes(secret.toLowerCase()), false, `${secret} is in the log`);
}

/** What is wrong with a document; warnings too, if there is an error. */
export async function issuesOf(
  document: DocumentInput,
  environment: Readonly<Record<string, string>> = {},
): Promise<readonly Issue[]> {
  try {
    await using _gateway = await startGateway(document, { environment });
    return [];
  } catch (error) {
    if (error instanceof RejectedDocumentError) return error.issues;
    throw error;
  }
}
