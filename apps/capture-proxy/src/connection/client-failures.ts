import { prefersHtml, reasonPhrase } from "@headworks/http-fields";
import { fieldValue, type RawFields } from "@headworks/http1";
import { type Failure, failureStatus } from "#exchange/failure.ts";
import type { SyntheticResponse } from "#exchange/phases.ts";

export const CLIENT_GONE: Failure = {
  stage: "client-write",
  side: "client",
  code: "CLIENT_ABORTED",
  message: "The client closed the connection before the response was complete",
};

export function invalidRequest(message: string, cause?: unknown): Failure {
  return { stage: "client-read", side: "client", code: "CLIENT_PROTOCOL", message, cause };
}

/** A bug in the proxy itself. */
export function internalFailure(cause: unknown): Failure {
  return { stage: "policy", side: "internal", code: "INTERNAL", message: "The proxy failed; its log says why", cause };
}

/**
 * Attributes an idle timeout to the side that caused it.
 * @param waitsFor  the client did not read the response, did not send its body, or the origin was silent
 */
export function stalled(host: string, waitsFor: "response-read" | "body" | "origin", idleTimeoutMs: number): Failure {
  switch (waitsFor) {
    case "response-read": {
      const message = `The client read nothing of the response for ${idleTimeoutMs} ms`;
      return { stage: "client-write", side: "client", code: "CLIENT_TIMEOUT", message };
    }
    case "body": {
      const message = `The client sent nothing for ${idleTimeoutMs} ms in the middle of its request`;
      return { stage: "client-read", side: "client", code: "CLIENT_TIMEOUT", message };
    }
    default: {
      const message = `${host} sent nothing for ${idleTimeoutMs} ms`;
      return { stage: "receive", side: "upstream", code: "UPSTREAM_TIMEOUT", message };
    }
  }
}

/** The error response of a failed exchange: a short page, or JSON if the client prefers it. */
export function failureResponse(failure: Failure, requestFields: Readonly<RawFields>): SyntheticResponse {
  const status = failureStatus(failure);
  const isJson = asksForJson(fieldValue(requestFields, "accept") ?? "");
  const text = isJson ? failureJson(failure) : failurePage(failure, status);
  const body = Buffer.from(text, "utf8");
  return {
    status,
    fields: [
      "Content-Type",
      isJson ? "application/json" : "text/html; charset=utf-8",
      "Content-Length",
      String(body.length),
      "Cache-Control",
      "no-store",
      "X-Weir-Error",
      failure.code,
    ],
    body,
  };
}

/** JSON only if Accept names it and does not prefer HTML; browsers and `*\/*` get the page. */
function asksForJson(accept: string): boolean {
  return /\bjson\b/i.test(accept) && !prefersHtml(accept);
}

function failureJson(failure: Failure): string {
  const { message: error, code, stage, side } = failure;
  return `${JSON.stringify({ error, code, stage, side })}\n`;
}

function failurePage(failure: Failure, status: number): string {
  const title = `${status} ${reasonPhrase(status)}`.trim();
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title>
<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:42rem;margin:12vh auto;padding:0 1.5rem}
h1{font-size:1.25rem}code{font:13px ui-monospace,monospace;opacity:.75}</style></head>
<body><h1>${title}</h1><p>${escapeHtml(failure.message)}.</p>
<p><code>${failure.code} · stage ${failure.stage} · side ${failure.side}</code></p><p>Weir, the proxy in between, made this page.</p></body></html>
`;
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
