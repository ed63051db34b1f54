import { useMutation } from "@tanstack/react-query";
import { useRef } from "react";
import { queryClient } from "../queries.ts";
import { toast } from "../ui/toast.tsx";
import { useRefusal } from "./use-refusal.ts";
import type { StoredDraft } from "./use-stored-draft.ts";

/**
 * Saves a rule, reports success, and assigns validation errors to `fields`. `topic` is the first part of its query
 * keys. Edits made during the save stay unsaved.
 */
export function useRuleSave<Body extends { readonly name?: string }, D>({
  topic,
  fields,
  stored: { draft, release, settle },
  save: store,
  onSaved,
}: {
  readonly topic: string;
  readonly fields: readonly string[];
  readonly stored: StoredDraft<D>;
  /** Stores the rule and returns its id. */
  readonly save: (body: Body) => Promise<string>;
  readonly onSaved: (id: string) => void;
}) {
  const sent = useRef(draft);
  const save = useMutation({
    mutationFn: async (body: Body) => {
      sent.current = draft;
      const id = await store(body);
      release();
      return id;
    },
    onSuccess: async (id, { name }) => {
      await queryClient.invalidateQueries({ queryKey: [topic] });
      settle(sent.current);
      toast({ tone: "success", title: `${name ?? "Rule"} saved` });
    },
  });
  const mutate = (body: Body): void => {
    // Passed here it is not called after the editor unmounts, so it does not navigate away from another screen.
    save.mutate(body, { onSuccess: onSaved });
  };
  return { save: { ...save, mutate }, refused: useRefusal(save.error, fields) };
}
