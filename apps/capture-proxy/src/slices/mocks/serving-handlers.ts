import type { mocksOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { notFound } from "#api/api-error.ts";
import type { CaptureStore } from "#storage/capture-store.ts";
import { NOT_SERVING, type ServedSession, type ServedSessionParts, serveSession } from "./served-session.ts";

type ServingHandlers = Pick<
  Handlers<typeof mocksOperations>,
  "getMockServing" | "startMockServing" | "stopMockServing" | "listMockMisses"
>;

export interface Serving {
  readonly current: () => ServedSession | undefined;
  readonly handlers: ServingHandlers;
}

export function createServing(
  parts: ServedSessionParts & { readonly captured: CaptureStore; readonly onChange: () => void },
): Serving {
  let current: ServedSession | undefined;
  const status = () => ({ status: 200, body: current?.status() ?? NOT_SERVING }) as const;
  return {
    current: () => current,
    handlers: {
      getMockServing: status,
      startMockServing: async ({ body, signal }) => {
        const session = await parts.captured.getSession(body.session_id);
        if (session === undefined) return notFound("session");
        await parts.captured.flush();
        current = await serveSession(parts, body, session.name, signal);
        parts.onChange();
        return status();
      },
      stopMockServing: () => {
        current = undefined;
        parts.onChange();
        return status();
      },
      listMockMisses: ({ query }) => {
        const { limit = 100, offset = 0 } = query;
        const misses = current?.misses() ?? [];
        return {
          status: 200,
          headers: { "x-total-count": String(misses.length) },
          body: misses.slice(offset, offset + limit),
        };
      },
    },
  };
}
