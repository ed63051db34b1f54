import { useMutation } from "@tanstack/react-query";
import { useRef } from "react";
import { queryClient } from "../queries.ts";
import { toast } from "../ui/toast.tsx";
import { useRefusal } from "./use-refusal.ts";
import type { StoredDraft } from "./use-stored-draft.ts";

/**
 * Saves a rule, says so, and sorts what the service refuses to `fields`. `topic` begins the keys of its queries. What
 * is written while the save is under way stays unsaved.
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
  /** What is saved. */
  readonly stored: StoredDraft<D>;
  /** Stores the rule and answers its id. */
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
    // Given here it is not called once the editor is gone: who went to another screen stays there.
    save.mutate(body, { onSuccess: onSaved });
  };
  return { save: { ...save, mutate }, refused: useRefusal(save.error, fields) };
}
