import type { Failure } from "#exchange/failure.ts";
import type { HttpExchange } from "./http-exchange.ts";

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
export function stalled(
  exchange: HttpExchange,
  waitsFor: "answer-taken" | "body" | "origin",
  idleTimeoutMs: number,
): Failure {
  switch (waitsFor) {
    case "answer-taken": {
      const message = `The client read nothing of the response for ${idleTimeoutMs} ms`;
      return { stage: "client-write", side: "client", code: "CLIENT_TIMEOUT", message };
    }
    case "body": {
      const message = `The client sent nothing for ${idleTimeoutMs} ms in the middle of its request`;
      return { stage: "client-read", side: "client", code: "CLIENT_TIMEOUT", message };
    }
    default: {
      const message = `${exchange.request.host} sent nothing for ${idleTimeoutMs} ms`;
      return { stage: "receive", side: "upstream", code: "UPSTREAM_TIMEOUT", message };
    }
  }
}
