import type { Route } from "@headworks/gateway-contract";
import type { Decorator, RequestChange } from "#request/phases.ts";
import type { CompileScope, GatewaySlice } from "#slice.ts";
import { compileFieldChanges } from "./field-changes.ts";
import { compileQueryChanges } from "./query-changes.ts";
import { checkTransforms } from "./transforms.check.ts";

/** Changes headers and queries on their way to the upstream, and headers of what the route's action answers. */
export const transforms: GatewaySlice = {
  name: "transforms",
  check: checkTransforms,
  compile: (_document, scope) => {
    const secret = (text: string): ReturnType<CompileScope["secret"]> => scope.secret(text);
    return {
      requestChangeFor: (route) => requestChangeFor(route, secret),
      decoratorFor: (route) => decoratorFor(route, secret),
    };
  },
};

function requestChangeFor({ transforms: block }: Route, secret: CompileScope["secret"]): RequestChange | undefined {
  const changeFields = compileFieldChanges(block?.request?.headers, secret);
  const changeTarget = compileQueryChanges(block?.request?.query);
  if (changeFields === undefined && changeTarget === undefined) return undefined;
  return {
    ...(changeFields === undefined ? {} : { changeFields }),
    ...(changeTarget === undefined ? {} : { changeTarget }),
  };
}

function decoratorFor({ transforms: block }: Route, secret: CompileScope["secret"]): Decorator | undefined {
  const change = compileFieldChanges(block?.response?.headers, secret);
  return change === undefined
    ? undefined
    : { on: "action-responses", decorate: (_request, head) => change(head.fields) };
}
