import type { BlockEntry } from "@headworks/capture-contract";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Pencil, Plus, ShieldBan, Trash2 } from "lucide-react";
import { useMemo, useState } from "react";
import { api } from "../../api.ts";
import { blocklistQuery } from "../../queries.ts";
import { fieldErrors } from "../../rules/field-errors.ts";
import { ChangedElsewhere, useFollowed } from "../../rules/rule-editor.tsx";
import { useStoredDraft } from "../../rules/stored-draft.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, Switch, TextArea, TextInput } from "../../ui/field.tsx";
import { formatCount, formatDateTime } from "../../ui/format.ts";
import { type ListColumn, ListTable } from "../../ui/list-table.tsx";
import { Page } from "../../ui/page.tsx";
import { EmptyState } from "../../ui/states.tsx";
import { Stats } from "../../ui/stats.tsx";
import { attempt, toast } from "../../ui/toast.tsx";
import { BLOCK_FIELDS, type BlockDraft, bodyOf, draftOf, NEW_BLOCK, restoreBody } from "./block-form.ts";
import styles from "./blocklist.module.css";

/** Hosts whose requests get a configured response instead of being forwarded. */
export function BlocklistView() {
  const client = useQueryClient();
  const entries = useQuery(blocklistQuery);
  const stats = useQuery({
    queryKey: ["blocklist", "stats"],
    queryFn: ({ signal }) => api.blocklist.getBlocklistStats({ signal }),
    refetchInterval: 5000,
  });
  const [editing, setEditing] = useState<BlockEntry | "new" | null>(null);
  const refresh = () => client.invalidateQueries({ queryKey: ["blocklist"] });
  const toggle = useMutation({
    mutationFn: ({ id, enabled }: { readonly id: string; readonly enabled: boolean }) =>
      attempt("Could not switch the entry", () =>
        api.blocklist.toggleBlockEntry({ params: { id }, body: { enabled } }),
      ),
    onSettled: refresh,
  });
  const restore = async (entry: BlockEntry): Promise<void> => {
    await attempt("Could not restore the entry", () => api.blocklist.createBlockEntry({ body: restoreBody(entry) }));
    await refresh();
  };
  const remove = async (entry: BlockEntry): Promise<void> => {
    const done = await attempt("Could not delete the entry", () =>
      api.blocklist.deleteBlockEntry({ params: { id: entry.id } }),
    );
    await refresh();
    if (done) {
      toast({
        title: `${entry.pattern} is no longer blocked`,
        durationMs: 8000,
        action: { label: "Undo", onSelect: () => void restore(entry) },
      });
    }
  };
  const list = entries.data ?? [];
  const add = (
    <Button variant="primary" icon={<Plus size={14} />} onClick={() => setEditing("new")}>
      Block host
    </Button>
  );
  return (
    <Page
      title="Block list"
      description="Requests to these hosts get the response configured here; no connection is opened."
      actions={list.length > 0 && add}
    >
      {stats.data !== undefined && list.length > 0 && (
        <Stats
          figures={[
            ["Entries", formatCount(stats.data.total)],
            ["Enabled", formatCount(stats.data.enabled)],
            ["Disabled", formatCount(stats.data.disabled)],
            ["Blocked requests", formatCount(stats.data.total_hits)],
          ]}
        />
      )}
      <ListTable
        label="Block list"
        list={entries}
        isOff={(entry) => !entry.enabled}
        empty={
          <EmptyState title="No blocked hosts" icon={<ShieldBan size={28} />} actions={add}>
            Block trackers, or an API to test how clients handle its absence.
          </EmptyState>
        }
        columns={columnsOf({
          toggle: (entry, enabled) => toggle.mutate({ id: entry.id, enabled }),
          edit: setEditing,
          remove: (entry) => void remove(entry),
        })}
      />
      {editing === "new" && <BlockDialog entry={null} isGone={false} onClose={() => setEditing(null)} />}
      {editing !== null && editing !== "new" && <Editing begun={editing} onClose={() => setEditing(null)} />}
    </Page>
  );
}

/** The dialog of an entry, which follows changes by other clients. */
function Editing({ begun, onClose }: { readonly begun: BlockEntry; readonly onClose: () => void }) {
  const entries = useQuery(blocklistQuery);
  const { item, isGone } = useFollowed(begun, entries.data);
  return <BlockDialog entry={item} isGone={isGone} onClose={onClose} />;
}

function columnsOf({
  toggle,
  edit,
  remove,
}: {
  readonly toggle: (entry: BlockEntry, enabled: boolean) => void;
  readonly edit: (entry: BlockEntry) => void;
  readonly remove: (entry: BlockEntry) => void;
}): readonly ListColumn<BlockEntry>[] {
  return [
    {
      title: "On",
      kind: "switch",
      cell: (entry) => (
        <span className={styles["switch"]}>
          <Switch
            aria-label={`Block ${entry.pattern}`}
            checked={entry.enabled}
            onChange={(enabled) => toggle(entry, enabled)}
          />
        </span>
      ),
    },
    {
      title: "Pattern",
      cell: (entry) => (
        <>
          <code className={styles["pattern"]}>{entry.pattern}</code>
          {entry.note !== null && <div className={styles["note"]}>{entry.note}</div>}
        </>
      ),
    },
    {
      title: "Response",
      cell: (entry) => (
        <span className={styles["response"]}>
          {entry.status_code} <span className={styles["quiet"]}>{entry.content_type}</span>
        </span>
      ),
    },
    { title: "Hits", kind: "number", cell: (entry) => formatCount(entry.hit_count) },
    { title: "Added", kind: "quiet", from: "wide", cell: (entry) => formatDateTime(Date.parse(entry.created_at)) },
    {
      title: "Actions",
      kind: "actions",
      cell: (entry) => (
        <>
          <IconButton label={`Edit ${entry.pattern}`} icon={<Pencil size={14} />} onClick={() => edit(entry)} />
          <IconButton label={`Delete ${entry.pattern}`} icon={<Trash2 size={14} />} onClick={() => remove(entry)} />
        </>
      ),
    },
  ];
}

type BlockField = (typeof BLOCK_FIELDS)[number];

/** Creates or edits a block list entry, with validation errors of the service at their fields. */
function BlockDialog({
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
