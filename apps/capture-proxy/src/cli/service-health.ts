import { metricsOperations } from "@headworks/capture-contract";
import type { DetailedHealth } from "@headworks/capture-contract";
import { ApiFailure } from "@headworks/contract-kit/client";
import { callJson } from "./api-connection.ts";
import type { ApiAddress } from "./api-connection.ts";

/** The health of the service at an address; undefined if none responds within `probeMs`. */
export async function serviceHealth(
  address: ApiAddress,
  probeMs: number,
  signal?: AbortSignal,
): Promise<DetailedHealth | undefined> {
  try {
    const { value } = await callJson(
      { ...address, timeoutMs: Math.min(address.timeoutMs, probeMs) },
      metricsOperations.getDetailedHealth,
      signal === undefined ? {} : { signal },
    );
    return typeof (value as Partial<DetailedHealth> | null)?.proxy_address === "string"
      ? (value as DetailedHealth)
      : undefined;
  } catch (error) {
    if (error instanceof ApiFailure) return undefined;
    throw error;
  }
}
