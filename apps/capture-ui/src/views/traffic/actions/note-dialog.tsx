import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../../../api.ts";
import { queryClient } from "../../../queries.ts";
import { Button } from "../../../ui/button.tsx";
import { Dialog } from "../../../ui/dialog.tsx";
import { Field, TextArea } from "../../../ui/field.tsx";
import { ErrorState, Spinner } from "../../../ui/states.tsx";
import { attempt } from "../../../ui/toast.tsx";

const focusNow = (element: HTMLElement | null): void => element?.focus();

export function NoteDialog({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  const entry = useQuery({
    queryKey: ["entry", id, "note"],
    queryFn: ({ signal }) => api.traffic.getTraffic({ params: { id }, query: { include_bodies: "false" }, signal }),
    staleTime: 0,
    gcTime: 0,
  });
  const [draft, setDraft] = useState<string | null>(null);
  const text = draft ?? entry.data?.notes ?? "";
  const save = async () => {
    const saved = await attempt("Could not save the note", () =>
      api.traffic.noteTraffic({ params: { id }, body: { notes: text.trim() === "" ? null : text } }),
    );
    if (!saved) return;
    await queryClient.invalidateQueries({ queryKey: ["entry", id] });
    onClose();
  };
  return (
    <Dialog
      open
      onClose={onClose}
      onSubmit={() => void save()}
      title="Note"
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary" disabled={!entry.isSuccess}>
            Save
          </Button>
        </>
      }
    >
      {entry.isPending && <Spinner />}
      {entry.isError && <ErrorState title="Could not load the request" error={entry.error} />}
      {entry.isSuccess && (
        <Field
          label={`${entry.data.request.method} ${entry.data.request.host}${entry.data.request.path}`.slice(0, 120)}
          hint="Leave empty to remove the note. Find notes with note:text."
        >
          <TextArea
            ref={focusNow}
            rows={6}
            maxLength={65_536}
            value={text}
            onChange={(event) => setDraft(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void save();
            }}
          />
        </Field>
      )}
    </Dialog>
  );
}
