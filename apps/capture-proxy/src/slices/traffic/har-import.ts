import type { trafficOperations } from "@headworks/capture-contract";
import type { HandlerInput, HandlerResult } from "@headworks/contract-kit";
import { ApiError } from "#api/api-error.ts";
import type { SliceHost } from "../../slice.ts";

type ImportOperation = (typeof trafficOperations)["importHar"];

export async function answerHarImport(
  _host: Pick<SliceHost, "store" | "events">,
  _input: HandlerInput<ImportOperation>,
): Promise<HandlerResult<ImportOperation>> {
  throw new ApiError("NOT_IMPLEMENTED");
}
