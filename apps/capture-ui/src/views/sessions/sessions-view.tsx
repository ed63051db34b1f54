import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import {
  Check,
  Download,
  FolderInput,
  GitCompareArrows,
  Layers,
  MoreHorizontal,
  Pencil,
  Plus,
  Trash2,
} from "lucide-react";
import { useRef, useState } from "react";
import type { CaptureSession } from "@headworks/capture-contract";
import { api, operations, operationUrl } from "../../api.ts";
import { sessionsQuery } from "../../queries.ts";
import { navigate } from "../../shell/router.ts";
import { chooseAndImport } from "../../transfer/import.ts";
import { openSession } from "../../transfer/open-session.ts";
import { attempt, toast } from "../../ui/toast.tsx";
import { Button, IconButton } from "../../ui/button.tsx";
import { confirmAction, Dialog } from "../../ui/dialog.tsx";
import { Field, Switch, TextArea, TextInput } from "../../ui/field.tsx";
import { formatBytes, formatCount, formatDateTime, isolatedName } from "../../ui/format.ts";
import { ListTable } from "../../ui/list-table.tsx";
import { Menu } from "../../ui/menu.tsx";
import { Page } from "../../ui/page.tsx";
import { EmptyState } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import { fieldErrors } from "../../rules/field-errors.ts";
import { exportFileName, parseTags, sessionTitle } from "./session-form.ts";
import styles from "./sessions.module.css";

const FIELDS = ["name", "notes", "tags", "description"] as const;

/** Creates, renames, opens, exports, imports and deletes sessions. */
export function SessionsView() {
  const sessions = useQuery({ ...sessionsQuery, refetchInterval: 10_000 });
  const [editing, setEditing] = useState<CaptureSession | "new" | null>(null);
  return (
    <Page
      title="Sessions"
      description="Traffic is recorded into the active session. Other sessions are kept until you delete them. Drop files on this page to import them."
      actions={
        <>
          <Button icon={<FolderInput size={14} />} onClick={chooseAndImport}>
            Import
          </Button>
          <Button variant="primary" icon={<Plus size={14} />} onClick={() => setEditing("new")}>
            New session
          </Button>
        </>
      }
    >
      <ListTable
        label="Sessions"
        list={sessions}
        isSelected={(session) => session.is_current}
        empty={
          <EmptyState title="No sessions" icon={<Layers size={28} />}>
            The first session starts with the first request.
          </EmptyState>
        }
        columns={[
          { title: "Name", cell: (session) => <SessionName session={session} /> },
          { title: "Requests", kind: "number", cell: (session) => formatCount(session.request_count) },
          { title: "Size", kind: "number", from: "medium", cell: (session) => formatBytes(session.total_size_bytes) },
          { title: "Created", kind: "quiet", from: "wide", cell: (session) => minuteOf(session.created_at) },
          { title: "Updated", kind: "quiet", from: "medium", cell: (session) => minuteOf(session.updated_at) },
          {
            title: "Actions",
            kind: "actions",
            cell: (session) => (
              <SessionActions
                session={session}
                active={sessions.data?.find(({ is_current }) => is_current)}
                onEdit={() => setEditing(session)}
              />
            ),
          },
        ]}
      />
      {editing !== null && (
        <SessionDialog session={editing === "new" ? null : editing} onClose={() => setEditing(null)} />
      )}
    </Page>
  );
}

function download(session: CaptureSession, format: "har" | "session"): void {
  // The browser streams it to disk and shows progress.
  const link = document.createElement("a");
  link.href = operationUrl(operations.sessions.exportSession, { params: { id: session.id }, query: { format } });
  link.download = exportFileName(session, format);
  link.click();
  toast({
    title: `Exporting ${isolatedName(sessionTitle(session))}`,
    text: "Progress is shown in the browser's downloads.",
  });
}

function minuteOf(time: string): string {
  return formatDateTime(Date.parse(time)).slice(0, 16);
}

function SessionName({ session }: { readonly session: CaptureSession }) {
  const [renaming, setRenaming] = useState(false);
  const isBack = useRef(false);
  const leave = (): void => {
    isBack.current = true;
    setRenaming(false);
  };
  /** Returns the focus to the button that opened the field. */
  const takeBack = (button: HTMLButtonElement | null): void => {
    if (button === null || !isBack.current) return;
    isBack.current = false;
    button.focus();
  };
  return (
    <>
      {renaming ? (
        <RenameField session={session} onDone={leave} />
      ) : (
        <span className={styles["name"]}>
          <span
            className={session.name === null ? styles["quiet"] : styles["title"]}
            onDoubleClick={() => setRenaming(true)}
          >
            {sessionTitle(session)}
          </span>
          {session.is_current && <Tag tone="ok">active</Tag>}
          {session.tags.map((tag) => (
            <Tag key={tag} tone="neutral">
              {tag}
            </Tag>
          ))}
          <IconButton
            ref={takeBack}
            label={`Rename ${isolatedName(sessionTitle(session))}`}
            className={styles["rename"] ?? ""}
            icon={<Pencil size={12} />}
            onClick={() => setRenaming(true)}
          />
        </span>
      )}
      {session.notes !== null && session.notes !== "" && <div className={styles["notes"]}>{session.notes}</div>}
    </>
  );
}

function SessionActions({
  session,
  active,
  onEdit,
}: {
  readonly session: CaptureSession;
  readonly active: CaptureSession | undefined;
  readonly onEdit: () => void;
}) {
  const client = useQueryClient();
  const remove = async (): Promise<void> => {
    const sure = await confirmAction({
      title: `Delete ${isolatedName(sessionTitle(session))}?`,
      text: `${formatCount(session.request_count)} requests and ${formatBytes(session.total_size_bytes)} of bodies will be permanently removed. Export the session first if you may need it.`,
      action: "Delete",
      danger: true,
    });
    if (!sure) return;
    await attempt("Could not delete the session", () => api.sessions.deleteSession({ params: { id: session.id } }));
    await client.invalidateQueries({ queryKey: ["sessions"] });
  };
  return (
    <div className={styles["actions"]}>
      {session.is_current ? (
        <Button variant="ghost" onClick={() => void openSession(session.id)}>
          Show
        </Button>
      ) : (
        <Button onClick={() => void openSession(session.id)}>Open</Button>
      )}
      <Menu
        align="end"
        trigger={
          <IconButton
            label={`More actions for ${isolatedName(sessionTitle(session))}`}
            icon={<MoreHorizontal size={15} />}
          />
        }
        items={() => [
          { kind: "item", label: "Name, notes and tags", icon: <Pencil size={14} />, onSelect: onEdit },
          {
            kind: "item",
            label: "Compare with the active session",
            icon: <GitCompareArrows size={14} />,
            disabled: active === undefined || session.is_current,
            onSelect: () => navigate(`/replay?sessions=${session.id},${active?.id ?? ""}`),
          },
          { kind: "separator" },
          {
            kind: "item",
            label: "Export as HAR",
            detail: "For browsers and other tools",
            icon: <Download size={14} />,
            onSelect: () => download(session, "har"),
          },
          {
            kind: "item",
            label: "Export full session (Weir format)",
            detail: "Lossless",
            icon: <Download size={14} />,
            onSelect: () => download(session, "session"),
          },
          { kind: "separator" },
          {
            kind: "item",
            label: "Delete",
            ...(session.is_current ? { detail: "This session is active; open another session first" } : {}),
            icon: <Trash2 size={14} />,
            danger: true,
            disabled: session.is_current,
            onSelect: () => void remove(),
          },
        ]}
      />
    </div>
  );
}

function RenameField({ session, onDone }: { readonly session: CaptureSession; readonly onDone: () => void }) {
  const client = useQueryClient();
  const [name, setName] = useState(session.name ?? "");
  const save = async (): Promise<void> => {
    const next = name.trim();
    if (next === "" || next === session.name) {
      onDone();
      return;
    }
    const saved = await attempt("Could not rename the session", () =>
      api.sessions.updateSession({ params: { id: session.id }, body: { name: next } }),
    );
    await client.invalidateQueries({ queryKey: ["sessions"] });
    if (saved) onDone();
  };
  return (
    <span className={styles["renaming"]}>
      <TextInput
        // The field appears on user request.
        // oxlint-disable-next-line jsx-a11y/no-autofocus -- see above
        autoFocus
        aria-label="Session name"
        maxLength={255}
        value={name}
        onFocus={(event) => event.target.select()}
        onChange={(event) => setName(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") void save();
          else if (event.key === "Escape") onDone();
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      />
      <IconButton label="Save name" icon={<Check size={15} />} onClick={() => void save()} />
    </span>
  );
}

/** Creates a session, or edits its name, notes and tags. */
function SessionDialog({
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
  const refused = fieldErrors(save.error, FIELDS);
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
        hint={session === null ? "Optional. Defaults to the current time." : undefined}
        error={refused.fields["name"]}
      >
        <TextInput maxLength={255} value={name} onChange={(event) => setName(event.target.value)} />
      </Field>
      <Field label="Notes" error={refused.fields["notes"] ?? refused.fields["description"]}>
        <TextArea rows={4} maxLength={65_536} value={notes} onChange={(event) => setNotes(event.target.value)} />
      </Field>
      <Field label="Tags" hint="Separate with commas" error={parsed.ok ? refused.fields["tags"] : parsed.message}>
        <TextInput value={tags} onChange={(event) => setTags(event.target.value)} />
      </Field>
      {session === null && <Switch label="Make it the active session" checked={open} onChange={setOpen} />}
      {refused.general !== null && (
        <p className={styles["error"]} role="alert">
          {refused.general}
        </p>
      )}
    </Dialog>
  );
}
