/** Names of gRPC's status codes, by code (gRPC, "Status codes and their use"). */
export const GRPC_STATUS_NAMES: readonly string[] = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED",
];

/** The code for a name or a number in any case; undefined for neither. */
export function parseGrpcStatus(text: string): number | undefined {
  if (/^\d{1,9}$/u.test(text)) return Number(text);
  const code = GRPC_STATUS_NAMES.indexOf(text.toUpperCase());
  return code === -1 ? undefined : code;
}
