// Tested by ../../../../e2e/ui-rules.test.ts
import { useMutation } from "@tanstack/react-query";
import { queryClient } from "../queries.ts";
import { toast } from "../ui/toast.tsx";
import { useRefusal } from "./use-refusal.ts";

/** Saves a rule, says so, and sorts what the service refuses to `fields`. `topic` begins the keys of its queries. */
export function useRuleSave<Body extends { readonly name?: string }>({
  topic,
  fields,
  save: store,
  onSaved,
}: {
  readonly topic: string;
  readonly fields: readonly string[];
  /** Stores the rule and answers its id. */
  readonly save: (body: Body) => Promise<string>;
  readonly onSaved: (id: string) => void;
}) {
  const save = useMutation({
    mutationFn: store,
    onSuccess: async (id, { name }) => {
      await queryClient.invalidateQueries({ queryKey: [topic] });
      toast({ tone: "success", title: `${name ?? "The rule"} is saved` });
      onSaved(id);
    },
  });
  return { save, refused: useRefusal(save.error, fields) };
}
