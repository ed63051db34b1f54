import type { BlockEntry } from "@headworks/capture-contract";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Pencil, Plus, ShieldBan, Trash2 } from "lucide-react";
import { useState } from "react";
import { api } from "../../api.ts";
import { blocklistQuery } from "../../queries.ts";
import { useFollowed } from "../../rules/rule-editor.tsx";
import { Button, IconButton } from "../../ui/button.tsx";
import { Switch } from "../../ui/field.tsx";
import { formatCount, formatDateTime } from "../../ui/format.ts";
import { ListTable } from "../../ui/list-table.tsx";
import type { ListColumn } from "../../ui/list-table.tsx";
import { EmptyState } from "../../ui/states.tsx";
import { attempt, toast } from "../../ui/toast.tsx";
import { Page } from "../../ui/page.tsx";
import { BlockDialog } from "./block-dialog.tsx";
import { restoreBody } from "./block-form.ts";
import { Stats } from "../../ui/stats.tsx";
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
