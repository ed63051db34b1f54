import type { ReplayResult, SavedRequest } from "@headworks/capture-contract";
import { useMutation } from "@tanstack/react-query";
import { useRef } from "react";
import { api } from "../../api.ts";
import { queryClient } from "../../queries.ts";
import type { StoredDraft } from "../../rules/use-stored-draft.ts";
import { attempt } from "../../ui/attempt.ts";
import { toast } from "../../ui/toast.tsx";
import { aboutOf, modificationsOf, requestOf, type RequestDraft } from "./request-draft.ts";

/** Values by the names of variables. */
export type Variables = Readonly<Record<string, string>>;

interface Sending {
  /** Null when the request was saved for the first time and could not be sent. */
  readonly result: ReplayResult | null;
  readonly savedId: string;
  /** Whether the request was saved to be sent. */
  readonly isStored: boolean;
}

/**
 * Where the last outcome of a saved request, and what was entered for its variables, are kept: the first save begins the
 * editor anew, and they should not be lost with that.
 */
export const outcomeKey = (id: string) => ["replay-outcome", id] as const;
const variablesKey = (id: string) => ["replay-variables", id] as const;

const refresh = () => queryClient.invalidateQueries({ queryKey: ["replay"] });

/** What was entered for the variables of a request before its first save. */
export function enteredVariables(id: string): Variables {
  return queryClient.getQueryData<Variables>(variablesKey(id)) ?? {};
}

/** Saving a request that is written, and sending it, which may save it as well. */
export function useRequestCalls({
  saved,
  stored,
  variables,
  follow,
}: {
  /** Null for one that is not saved yet. */
  readonly saved: SavedRequest | null;
  readonly stored: StoredDraft<RequestDraft>;
  readonly variables: Variables;
  /** Whether redirects are followed. */
  readonly follow: boolean;
}) {
  const { before, draft } = stored;
  const sent = useRef(draft);
  const store = async (): Promise<string> => {
    sent.current = draft;
    const body = { request: requestOf(draft), ...aboutOf(draft) };
    if (saved === null) return (await api.replay.saveRequest({ body })).id;
    await api.replay.updateSavedRequest({ params: { id: saved.id }, body: { ...body, tags: saved.tags } });
    return saved.id;
  };
  const save = useMutation({
    mutationFn: store,
    onSuccess: async (id) => {
      if (saved === null) queryClient.setQueryData(variablesKey(id), variables);
      await refresh();
      stored.settle(sent.current);
      toast({ tone: "success", title: "The request is saved", durationMs: 2500 });
    },
  });
  const send = useMutation({
    mutationFn: async (): Promise<Sending> => {
      const modified = saved === null ? null : modificationsOf(before, draft);
      // What modifications cannot say has to be saved to be sent.
      const isStored = saved === null || modified === null;
      const id = isStored ? await store() : saved.id;
      const execute = async () =>
        await api.replay.executeReplay({
          params: { id },
          body: { modifications: { ...modified, follow_redirects: follow }, variables },
        });
      if (saved !== null) return { result: await execute(), savedId: id, isStored };
      // Stored from here on, whatever comes of the sending: written or sent once more it must not be stored twice.
      stored.release();
      const sending: { result: ReplayResult | null } = { result: null };
      await attempt("The request is saved, but was not sent", async () => {
        sending.result = await execute();
      });
      return { ...sending, savedId: id, isStored };
    },
    onSuccess: async ({ result, savedId, isStored }) => {
      if (result !== null) queryClient.setQueryData(outcomeKey(savedId), result);
      if (saved === null) queryClient.setQueryData(variablesKey(savedId), variables);
      await refresh();
      if (isStored) stored.settle(sent.current);
    },
  });
  return { save, send };
}
