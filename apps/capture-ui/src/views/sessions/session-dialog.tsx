import type { CaptureSession } from "@headworks/capture-contract";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../../api.ts";
import { openSession } from "../../transfer/open-session.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, Switch, TextArea, TextInput } from "../../ui/field.tsx";
import { fieldErrors } from "../settings/field-errors.ts";
import { parseTags } from "./session-form.ts";
import styles from "./sessions.module.css";

const FIELDS = ["name", "notes", "tags", "description"] as const;

/** Makes a session, or changes the name, notes and tags of one. */
export function SessionDialog({
  session,
  onClose,
}: {
  readonly session: CaptureSession | null;
  readonly onClose: () => void;
}) {
  const client = useQueryClient();
  const [name, setName] = useState(session?.name ?? "");
  const [notes, setNotes] = useState(session?.notes ?? "");
  const [tags, setTags] = useState(session?.tags.join(", ") ?? "");
  const [open, setOpen] = useState(true);
  const parsed = parseTags(tags);
  const save = useMutation({
    mutationFn: async () => {
      const list = parsed.ok ? [...parsed.tags] : [];
      const named = name.trim() === "" ? {} : { name: name.trim() };
      const noted = notes.trim() === "" ? null : notes;
      if (session !== null) {
        await api.sessions.updateSession({ params: { id: session.id }, body: { ...named, notes: noted, tags: list } });
        return;
      }
      const made = await api.sessions.createSession({
        body: { ...named, ...(noted === null ? {} : { description: noted }) },
      });
      if (list.length > 0) await api.sessions.updateSession({ params: { id: made.id }, body: { tags: list } });
      if (open) await openSession(made.id);
    },
    onSuccess: onClose,
    onSettled: () => client.invalidateQueries({ queryKey: ["sessions"] }),
  });
  const refused =
    save.error === null
      ? { fields: {} as Readonly<Record<string, string>>, general: null }
      : fieldErrors(save.error, FIELDS);
  return (
    <Dialog
      open
      onClose={onClose}
      onSubmit={() => parsed.ok && save.mutate()}
      title={session === null ? "New session" : "Name, notes and tags"}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary" disabled={save.isPending || !parsed.ok}>
            {session === null ? "Create" : "Save"}
          </Button>
        </>
      }
    >
      <Field
        label="Name"
        hint={session === null ? "Left empty, it is called after the time" : undefined}
        error={refused.fields["name"]}
      >
        <TextInput maxLength={255} value={name} onChange={(event) => setName(event.target.value)} />
      </Field>
      <Field label="Notes" error={refused.fields["notes"] ?? refused.fields["description"]}>
        <TextArea rows={4} maxLength={65_536} value={notes} onChange={(event) => setNotes(event.target.value)} />
      </Field>
      <Field label="Tags" hint="Separated by commas" error={parsed.ok ? refused.fields["tags"] : parsed.message}>
        <TextInput value={tags} onChange={(event) => setTags(event.target.value)} />
      </Field>
      {session === null && <Switch label="Record into it from now on" checked={open} onChange={setOpen} />}
      {refused.general !== null && (
        <p className={styles["error"]} role="alert">
          {refused.general}
        </p>
      )}
    </Dialog>
  );
}
