import type { BlockEntry } from "@headworks/capture-contract";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { api } from "../../api.ts";
import { ChangedElsewhere } from "../../rules/rule-editor.tsx";
import { useStoredDraft } from "../../rules/stored-draft.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, TextArea, TextInput } from "../../ui/field.tsx";
import { fieldErrors } from "../../rules/field-errors.ts";
import { BLOCK_FIELDS, NEW_BLOCK, bodyOf, draftOf, restoreBody } from "./block-form.ts";
import type { BlockDraft } from "./block-form.ts";
import styles from "./blocklist.module.css";

type BlockField = (typeof BLOCK_FIELDS)[number];

/** Creates or edits a block list entry, with validation errors of the service at their fields. */
export function BlockDialog({
  entry,
  isGone,
  onClose,
}: {
  /** Current version of the stored entry; null for a new one. */
  readonly entry: BlockEntry | null;
  /** Deleted by another client; `entry` is its last version. */
  readonly isGone: boolean;
  readonly onClose: () => void;
}) {
  const client = useQueryClient();
  const begun = useMemo(() => (entry === null ? NEW_BLOCK : draftOf(entry)), [entry]);
  const name = `block ${entry?.id ?? "new"}`;
  const stored = useStoredDraft<BlockDraft>(name, begun);
  const { draft } = stored;
  const close = (): void => {
    stored.release();
    onClose();
  };
  const [problems, setProblems] = useState<Readonly<Record<string, string>>>({});
  const save = useMutation({
    mutationFn: async (body: Parameters<typeof api.blocklist.createBlockEntry>[0]["body"]) => {
      if (entry === null) await api.blocklist.createBlockEntry({ body });
      else if (isGone) await api.blocklist.createBlockEntry({ body: { ...restoreBody(entry), ...body } });
      else await api.blocklist.updateBlockEntry({ params: { id: entry.id }, body });
    },
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: ["blocklist"] });
      close();
    },
  });
  const refused = fieldErrors(save.error, BLOCK_FIELDS);
  const errorOf = (name: BlockField) => problems[name] ?? refused.fields[name];
  const set = (change: Partial<BlockDraft>): void => {
    stored.set({ ...draft, ...change });
    setProblems({});
    save.reset();
  };
  const submit = (): void => {
    const made = bodyOf(draft);
    if (made.ok) save.mutate(made.body);
    else setProblems(made.fields);
  };
  return (
    <Dialog
      open
      onClose={close}
      isUnsaved={stored.isChanged}
      onSubmit={submit}
      title={entry === null ? "Block host" : "Edit block list entry"}
      actions={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button type="submit" variant="primary" disabled={save.isPending}>
            {entry === null ? "Block" : "Save"}
          </Button>
        </>
      }
    >
      {(isGone || stored.isOutdated) && !save.isPending && (
        <ChangedElsewhere noun="entry" isGone={isGone} stored={stored} />
      )}
      <BlockFields draft={draft} errorOf={errorOf} set={set} />
      {refused.general !== null && (
        <p className={styles["error"]} role="alert">
          {refused.general}
        </p>
      )}
    </Dialog>
  );
}

function BlockFields({
  draft,
  errorOf,
  set,
}: {
  readonly draft: BlockDraft;
  readonly errorOf: (name: BlockField) => string | undefined;
  readonly set: (change: Partial<BlockDraft>) => void;
}) {
  return (
    <>
      <Field label="Host or pattern" hint="ads.example.com, *.ads.example.com, 10.0.0.0/8" error={errorOf("pattern")}>
        <TextInput
          mono
          maxLength={255}
          value={draft.pattern}
          onChange={(event) => set({ pattern: event.target.value })}
        />
      </Field>
      <Field label="Note" error={errorOf("note")}>
        <TextInput
          maxLength={4096}
          placeholder="Reason for blocking"
          value={draft.note}
          onChange={(event) => set({ note: event.target.value })}
        />
      </Field>
      <div className={styles["pair"]}>
        <Field label="Status" hint="200 to 599" error={errorOf("status_code")}>
          <TextInput
            inputMode="numeric"
            placeholder="403"
            maxLength={3}
            value={draft.statusCode}
            onChange={(event) => set({ statusCode: event.target.value })}
          />
        </Field>
        <Field label="Content type" error={errorOf("content_type")}>
          <TextInput
            mono
            placeholder="text/plain"
            maxLength={255}
            value={draft.contentType}
            onChange={(event) => set({ contentType: event.target.value })}
          />
        </Field>
      </div>
      <Field label="Response body" error={errorOf("response_body")}>
        <TextArea
          mono
          rows={4}
          value={draft.responseBody}
          onChange={(event) => set({ responseBody: event.target.value })}
        />
      </Field>
    </>
  );
}
