import type { CredentialRefusal, IssuedCredentials } from "#slices/consumers/consumers.slice.ts";
import type { IssuedCredential } from "#storage/state-store.ts";
import { AdminError, type HandlerCall } from "./bind-operation.ts";

/** Handlers for issued API keys. */
export function credentialOperations(credentials: IssuedCredentials, nowMs: () => number) {
  return {
    listCredentials: ({ params }: HandlerCall) => {
      const { consumer } = params as { consumer: string };
      const issued = done(credentials.list(consumer));
      return { status: 200, body: { consumer, credentials: issued.map((credential) => shown(credential, nowMs())) } };
    },
    issueCredential: async ({ params, body, note }: HandlerCall) => {
      const { consumer } = params as { consumer: string };
      const { key } = (body ?? {}) as { key?: string };
      const issued = done(await written(async () => await credentials.issue(consumer, key)));
      const { id, createdMs } = issued.credential;
      note(`${consumer} ${id}`);
      return {
        status: 201,
        body: {
          consumer,
          credential_id: id,
          created_at: timeOf(createdMs),
          // A key chosen by the caller is not echoed.
          ...(key === undefined ? { key: issued.key } : {}),
          note: "The key is kept as a hash only; it cannot be shown again",
        },
      };
    },
    retireCredential: async ({ params, body, note }: HandlerCall) => {
      const { credential: id } = params as { credential: string };
      const { at_ms: atMs } = (body ?? {}) as { at_ms?: number };
      const { credential, isImmediate } = done(await written(async () => await credentials.retire(id, atMs)));
      note(`${credential.consumer} ${id}`);
      return {
        status: 200,
        body: {
          credential_id: id,
          retire_at: timeOf(credential.retireMs),
          effective: isImmediate ? "immediate" : "scheduled",
        },
      };
    },
  };
}

function shown({ id, createdMs, retireMs }: IssuedCredential, nowMs: number): object {
  const isFinished = retireMs !== undefined && retireMs <= nowMs;
  return {
    id,
    kind: "api_key",
    created_at: timeOf(createdMs),
    revoked_at: isFinished ? timeOf(retireMs) : null,
    retire_at: timeOf(retireMs),
  };
}

function timeOf(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}

function done<T extends object>(outcome: T | CredentialRefusal): T {
  if ("refused" in outcome) throw new AdminError(outcome.refused, outcome.message);
  return outcome;
}

async function written<T>(change: () => Promise<T>): Promise<T> {
  try {
    return await change();
  } catch (error) {
    throw new AdminError("state_store_unavailable", undefined, { cause: error });
  }
}
