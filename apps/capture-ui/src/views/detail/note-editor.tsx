import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api, errorText } from "../../api.ts";
import { keepDraft, keptDraft } from "../../rules/kept-drafts.ts";
import { Button } from "../../ui/button.tsx";
import { TextArea } from "../../ui/field.tsx";
import { toast } from "../../ui/toast.tsx";
import styles from "./detail.module.css";

/** The note of an entry; saved on demand and with Ctrl+Enter. */
export function NoteEditor({ id, notes }: { readonly id: string; readonly notes: string | null }) {
  const client = useQueryClient();
  const name = `note ${id}`;
  const [draft, setDraft] = useState<string | null>(() => keptDraft<string>(name)?.draft ?? null);
  const save = useMutation({
    mutationFn: (text: string) =>
      api.traffic.noteTraffic({ params: { id }, body: { notes: text.trim() === "" ? null : text } }),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ["entry", id] });
      setDraft(null);
    },
    onError: (error) => toast({ tone: "error", title: "The note was not saved", text: errorText(error) }),
  });
  const text = draft ?? notes ?? "";
  const isChanged = draft !== null && draft !== (notes ?? "");
  useEffect(() => keepDraft(name, isChanged ? { base: notes ?? "", draft } : null), [name, isChanged, notes, draft]);
  return (
    <div className={styles["noteForm"]}>
      <TextArea
        aria-label="Note"
        rows={3}
        maxLength={65_536}
        placeholder="What is worth remembering about this entry"
        value={text}
        onChange={(event) => setDraft(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && isChanged) save.mutate(text);
        }}
      />
      <div>
        <Button disabled={!isChanged || save.isPending} onClick={() => save.mutate(text)}>
          Save note
        </Button>
        {isChanged && (
          <Button variant="ghost" onClick={() => setDraft(null)}>
            Discard
          </Button>
        )}
      </div>
    </div>
  );
}
