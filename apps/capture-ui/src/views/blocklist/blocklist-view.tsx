import type { BlockEntry } from "@headworks/capture-contract";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Pencil, Plus, ShieldBan, Trash2 } from "lucide-react";
import { useState } from "react";
import { api } from "../../api.ts";
import { blocklistQuery } from "../../queries.ts";
import { Button, IconButton } from "../../ui/button.tsx";
import { Switch } from "../../ui/field.tsx";
import { formatCount, formatDateTime } from "../../ui/format.ts";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { NumberCell, Table } from "../../ui/table.tsx";
import { toast } from "../../ui/toast.tsx";
import { Page } from "../settings/page.tsx";
import { attempt } from "../traffic/actions/entry-actions.ts";
import { BlockDialog } from "./block-dialog.tsx";
import { restoreBody } from "./block-form.ts";
import styles from "./blocklist.module.css";

/** Hosts that Weir answers for instead of letting them be reached. */
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
      attempt("The entry was not switched", () =>
        api.blocklist.toggleBlockEntry({ params: { id }, body: { enabled } }),
      ),
    onSettled: refresh,
  });
  const restore = async (entry: BlockEntry): Promise<void> => {
    await attempt("The entry was not brought back", () => api.blocklist.createBlockEntry({ body: restoreBody(entry) }));
    await refresh();
  };
  const remove = async (entry: BlockEntry): Promise<void> => {
    const done = await attempt("The entry was not deleted", () =>
      api.blocklist.deleteBlockEntry({ params: { id: entry.id } }),
    );
    await refresh();
    if (done) {
      toast({
        title: `${entry.pattern} is not blocked any more`,
        durationMs: 8000,
        action: { label: "Undo", onSelect: () => void restore(entry) },
      });
    }
  };
  const list = entries.data ?? [];
  const add = (
    <Button variant="primary" icon={<Plus size={14} />} onClick={() => setEditing("new")}>
      Block a host
    </Button>
  );
  return (
    <Page
      title="Block list"
      description="Requests to these hosts get the answer given here; no connection is opened."
      wide
      actions={list.length > 0 && add}
    >
      {stats.data !== undefined && list.length > 0 && (
        <dl className={styles["stats"]}>
          <Stat label="Entries" value={stats.data.total} />
          <Stat label="Switched on" value={stats.data.enabled} />
          <Stat label="Switched off" value={stats.data.disabled} />
          <Stat label="Requests stopped" value={stats.data.total_hits} />
        </dl>
      )}
      {entries.error !== null && (
        <ErrorState
          title="The block list cannot be loaded"
          error={entries.error}
          onRetry={() => void entries.refetch()}
        />
      )}
      {entries.isPending && <EmptyState title="Loading the block list" icon={<Spinner />} />}
      {entries.isSuccess && list.length === 0 && (
        <EmptyState title="Nothing is blocked" icon={<ShieldBan size={28} />} actions={add}>
          Block trackers, or an API whose absence you want to test.
        </EmptyState>
      )}
      {list.length > 0 && (
        <BlockTable
          list={list}
          onToggle={(id, enabled) => toggle.mutate({ id, enabled })}
          onEdit={setEditing}
          onDelete={(entry) => void remove(entry)}
        />
      )}
      {editing !== null && <BlockDialog entry={editing === "new" ? null : editing} onClose={() => setEditing(null)} />}
    </Page>
  );
}

function Stat({ label, value }: { readonly label: string; readonly value: number }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{formatCount(value)}</dd>
    </div>
  );
}

function BlockTable({
  list,
  onToggle,
  onEdit,
  onDelete,
}: {
  readonly list: readonly BlockEntry[];
  readonly onToggle: (id: string, enabled: boolean) => void;
  readonly onEdit: (entry: BlockEntry) => void;
  readonly onDelete: (entry: BlockEntry) => void;
}) {
  return (
    <Table label="Block list">
      <thead>
        <tr>
          <th scope="col">On</th>
          <th scope="col">Pattern</th>
          <th scope="col">Answer</th>
          <NumberCell as="th" scope="col">
            Hits
          </NumberCell>
          <th scope="col" className={styles["wide"]}>
            Added
          </th>
          <th scope="col">
            <span className="visually-hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {list.map((entry) => (
          <tr key={entry.id} className={entry.enabled ? undefined : styles["off"]}>
            <td className={styles["switch"]}>
              <span className={styles["switchBox"]}>
                <Switch
                  aria-label={`Block ${entry.pattern}`}
                  checked={entry.enabled}
                  onChange={(enabled) => onToggle(entry.id, enabled)}
                />
              </span>
            </td>
            <td>
              <code className={styles["pattern"]}>{entry.pattern}</code>
              {entry.note !== null && <div className={styles["note"]}>{entry.note}</div>}
            </td>
            <td className={styles["answer"]}>
              {entry.status_code} <span className={styles["quiet"]}>{entry.content_type}</span>
            </td>
            <NumberCell>{formatCount(entry.hit_count)}</NumberCell>
            <td className={styles["wide"]}>{formatDateTime(Date.parse(entry.created_at))}</td>
            <td className={styles["actions"]}>
              <IconButton label={`Edit ${entry.pattern}`} icon={<Pencil size={14} />} onClick={() => onEdit(entry)} />
              <IconButton
                label={`Delete ${entry.pattern}`}
                icon={<Trash2 size={14} />}
                onClick={() => onDelete(entry)}
              />
            </td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}
