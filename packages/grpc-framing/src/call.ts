/** The encoding of a call's messages. */
export interface CallForm {
  /** `web`: gRPC-Web, with trailers as a message in the body. */
  readonly protocol: "grpc" | "web";
  /** gRPC-Web text: the whole body is base64. */
  readonly isText: boolean;
  /** Message format: `proto` unless the media type specifies another. */
  readonly format: string;
}

const MEDIA_TYPE = /^application\/grpc(-web(?:-text)?)?(?:\+([a-z0-9.+_-]{1,64}))?$/u;

/** Parses a Content-Type; undefined if not gRPC. */
export function parseCallForm(contentType: string | undefined): CallForm | undefined {
  if (contentType === undefined || contentType.length > 1024) return undefined;
  const [type = ""] = contentType.split(";", 1);
  const match = MEDIA_TYPE.exec(type.trim().toLowerCase());
  if (match === null) return undefined;
  const [, web, format = "proto"] = match;
  return { protocol: web === undefined ? "grpc" : "web", isText: web === "-web-text", format };
}

export interface CallPath {
  /** With package: `shop.v1.Orders`. */
  readonly service: string;
  readonly method: string;
}

/**
 * Parses the path of a call: the last two segments, since gRPC-Web servers may use a prefix. Undefined if there are
 * fewer.
 */
export function parseCallPath(path: string): CallPath | undefined {
  const end = path.search(/[?#]/u);
  const parts = (end === -1 ? path : path.slice(0, end)).split("/");
  const method = parts.at(-1) ?? "";
  const service = parts.at(-2) ?? "";
  return service === "" || method === "" ? undefined : { service, method };
}

const UNITS_MS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1000,
  m: 1,
  u: 0.001,
  n: 0.000_001,
};

/**
 * Parses a `grpc-timeout` such as `100m` or `5S` to milliseconds: at most eight digits and a unit; undefined otherwise.
 */
export function parseTimeoutMs(text: string): number | undefined {
  const match = /^(\d{1,8})([HMSmun])$/u.exec(text);
  const unitMs = UNITS_MS[match?.[2] ?? ""];
  return match === null || unitMs === undefined ? undefined : Number(match[1]) * unitMs;
}
