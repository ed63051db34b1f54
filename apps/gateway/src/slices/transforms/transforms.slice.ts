import type { Route } from "@headworks/gateway-contract";
import type { Decorator, RequestChange } from "#request/phases.ts";
import type { GatewaySlice } from "#slice.ts";
import { compileFieldChanges } from "./field-changes.ts";
import { compileQueryChanges } from "./query-changes.ts";
import { checkTransforms } from "./transforms.check.ts";

/** Changes headers and queries on their way to the upstream, and headers of what the route's action answers. */
export const transforms: GatewaySlice = {
  name: "transforms",
  check: checkTransforms,
  compile: () => ({ requestChangeFor, decoratorFor }),
};

function requestChangeFor({ transforms: block }: Route): RequestChange | undefined {
  const changeFields = compileFieldChanges(block?.request?.headers);
  const changeTarget = compileQueryChanges(block?.request?.query);
  if (changeFields === undefined && changeTarget === undefined) return undefined;
  return {
    ...(changeFields === undefined ? {} : { changeFields }),
    ...(changeTarget === undefined ? {} : { changeTarget }),
  };
}

function decoratorFor({ transforms: block }: Route): Decorator | undefined {
  const change = compileFieldChanges(block?.response?.headers);
  return change === undefined
    ? undefined
    : { on: "action-responses", decorate: (_request, head) => change(head.fields) };
}
