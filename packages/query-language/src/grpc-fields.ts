import type { Field } from "./fields.ts";

/** What the path of a gRPC or gRPC-Web call says. */
export const GRPC_FIELDS: readonly Field[] = [
  {
    name: "grpc.service",
    phrase: "the gRPC service",
    reads: "columns",
    value: {
      type: "text",
      literal: "contains",
      fold: "ascii",
      caseless: true,
      read: (r) => parts(r.requestType, r.path, 0),
    },
  },
  {
    name: "grpc.method",
    phrase: "the gRPC method",
    reads: "columns",
    value: {
      type: "text",
      literal: "equals",
      fold: "ascii",
      caseless: true,
      read: (r) => parts(r.requestType, r.path, 1),
    },
  },
];

/** The last segment but one of a call's path, or the last; none for exchanges that are no gRPC. */
function parts(requestType: string | undefined, path: string, which: 0 | 1): readonly string[] {
  if (requestType === undefined || !/^application\/grpc(?:$|[-+])/iu.test(requestType)) return [];
  const segments = path.split("/").slice(-2);
  const part = segments[which];
  return segments.length < 2 || segments.includes("") || part === undefined ? [] : [part];
}
