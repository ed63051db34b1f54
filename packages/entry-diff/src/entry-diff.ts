import type { EntryDiff, RequestData, ResponseData, Timings } from "@headworks/capture-contract";
import { compareBodies } from "./body-diff.ts";
import type { BodyOptions, SideBody } from "./body-diff.ts";
import { compareHeaders } from "./header-diff.ts";
import type { HeaderMatcher } from "./header-diff.ts";

/** An entry, or a replay that was not captured. */
export interface DiffSide {
  readonly id: string | null;
  readonly request: Pick<RequestData, "method" | "url" | "headers_list">;
  readonly response: Pick<ResponseData, "status_code" | "headers_list"> | null;
  readonly requestBody: SideBody;
  readonly responseBody: SideBody;
  readonly failureCode: string | null;
  readonly durationMs: number | null;
  readonly timings: Timings;
}

export interface EntryOptions extends BodyOptions {
  readonly ignoredHeaders: HeaderMatcher;
}

/** Compares two exchanges. Ignored paths, ignored headers and timings are reported but do not count as differences. */
export function compareEntries(left: DiffSide, right: DiffSide, options: EntryOptions): EntryDiff {
  const { ignoredHeaders } = options;
  const method = change(left.request.method, right.request.method);
  const url = change(left.request.url, right.request.url);
  const status = change(statusOf(left), statusOf(right));
  const failure = change(left.failureCode, right.failureCode);
  const requestHeaders = compareHeaders(left.request.headers_list, right.request.headers_list, ignoredHeaders);
  const responseHeaders = compareHeaders(
    left.response?.headers_list ?? [],
    right.response?.headers_list ?? [],
    ignoredHeaders,
  );
  const requestBody = compareBodies(left.requestBody, right.requestBody, options);
  const responseBody = compareBodies(left.responseBody, right.responseBody, options);
  const isRequestSame =
    method === null && url === null && requestHeaders.changed.length === 0 && isBodySame(requestBody);
  const isResponseSame =
    status === null && failure === null && responseHeaders.changed.length === 0 && isBodySame(responseBody);
  return {
    same: isRequestSame && isResponseSame,
    request_same: isRequestSame,
    response_same: isResponseSame,
    left_id: left.id,
    right_id: right.id,
    method,
    url,
    status,
    failure,
    request_headers: requestHeaders,
    response_headers: responseHeaders,
    request_body: requestBody,
    response_body: responseBody,
    timings: timingsOf(left, right),
  };
}

function change(left: string | null, right: string | null): { left: string | null; right: string | null } | null {
  return left === right ? null : { left, right };
}

function statusOf({ response }: DiffSide): string | null {
  return response === null ? null : String(response.status_code);
}

/** Whether the bodies are equal apart from ignored paths; incomparable bodies are not. */
export function isBodySame({ kind, changes, truncated }: EntryDiff["request_body"]): boolean {
  if (kind === "none" || kind === "same") return true;
  return kind === "json" && changes?.length === 0 && truncated !== true;
}

function timingsOf(left: DiffSide, right: DiffSide): EntryDiff["timings"] {
  const names = ["dns", "connect", "tls", "send", "wait", "receive"] as const;
  const pairs = [
    ["duration", left.durationMs, right.durationMs] as const,
    ...names.map((name) => [name, left.timings[name], right.timings[name]] as const),
  ];
  return Object.fromEntries(
    pairs.map(([name, before, after]) => {
      const delta = before === null || after === null ? null : Math.round((after - before) * 100) / 100;
      return [name, { left: before, right: after, delta }];
    }),
  );
}
