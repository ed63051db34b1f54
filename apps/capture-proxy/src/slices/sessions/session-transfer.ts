import type { sessionsOperations } from "@headworks/capture-contract";
import type { HandlerInput, HandlerResult } from "@headworks/contract-kit";
import { ApiError } from "#api/api-error.ts";
import type { SliceHost } from "../../slice.ts";

type Operations = typeof sessionsOperations;

export async function answerSessionExport(
  _host: Pick<SliceHost, "store">,
  _input: HandlerInput<Operations["exportSession"]>,
): Promise<HandlerResult<Operations["exportSession"]>> {
  throw new ApiError("NOT_IMPLEMENTED");
}

export async function answerSessionImport(
  _host: Pick<SliceHost, "store" | "events">,
  _input: HandlerInput<Operations["importSession"]>,
): Promise<HandlerResult<Operations["importSession"]>> {
  throw new ApiError("NOT_IMPLEMENTED");
}
