import { useQuery } from "@tanstack/react-query";
import { Check, ChevronDown, Pencil, Play, Plus } from "lucide-react";
import { useState } from "react";
import { api, errorText } from "../api.ts";
import { queryClient, runsQuery, sessionsQuery } from "../queries.ts";
import { openSession, viewSession } from "../transfer/open-session.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Field, TextInput } from "../ui/field.tsx";
import { formatCount, formatDateTime } from "../ui/format.ts";
import { Menu, type MenuEntry } from "../ui/menu.tsx";
import { navigate } from "./router.ts";
import styles from "./top-bar.module.css";

const MAX_SHOWN = 12;

/** The active session, with a menu to switch or create sessions. */
export function SessionSwitcher() {
  const sessions = useQuery(sessionsQuery);
  const [naming, setNaming] = useState<"create" | "rename" | null>(null);
  const running = useQuery(runsQuery).data?.filter((run) => run.ended_at === null) ?? [];
  const current = sessions.data?.find((session) => session.is_current);
  if (sessions.data === undefined) return null;
  const nameOf = (session: { readonly name: string | null; readonly created_at: string }): string =>
    session.name ?? formatDateTime(Date.parse(session.created_at));
  const currentName = current === undefined ? "none" : nameOf(current);
  const items = (): readonly MenuEntry[] => [
    ...(running.length === 0
      ? []
      : [
          { kind: "heading" as const, label: "Runs" },
          ...running.slice(0, MAX_SHOWN).map((run): MenuEntry => ({
            kind: "item",
            label: run.session_name ?? run.session_id,
            detail: `${formatCount(sessions.data.find(({ id }) => id === run.session_id)?.request_count ?? 0)} requests`,
            icon: <Play size={14} />,
            onSelect: () => viewSession(run.session_id),
          })),
        ]),
    { kind: "heading", label: "Sessions" },
    ...sessions.data.slice(0, MAX_SHOWN).map((session): MenuEntry => ({
      kind: "item",
      label: nameOf(session),
      detail: `${formatCount(session.request_count)} requests`,
      icon: session.is_current ? <Check size={14} /> : undefined,
      onSelect: () => {
        if (!session.is_current) void openSession(session.id);
      },
    })),
    ...(sessions.data.length > MAX_SHOWN
      ? [
          {
            kind: "item" as const,
            label: `All ${formatCount(sessions.data.length)} sessions`,
            onSelect: () => navigate("/sessions"),
          },
        ]
      : []),
    { kind: "separator" },
    { kind: "item", label: "New session…", icon: <Plus size={14} />, onSelect: () => setNaming("create") },
    {
      kind: "item",
      label: "Rename this session…",
      icon: <Pencil size={14} />,
      disabled: current === undefined,
      onSelect: () => setNaming("rename"),
    },
  ];
  return (
    <>
      <Menu
        items={items}
        trigger={
          <Button className={styles["session"]}>
            <span className={styles["soft"]}>Session</span>
            <span className={styles["sessionName"]}>{currentName}</span>
            {running.length > 0 && (
              <span className={styles["runs"]}>{running.length === 1 ? "1 run" : `${running.length} runs`}</span>
            )}
            <ChevronDown size={13} aria-hidden />
          </Button>
        }
      />
      {naming !== null && (
        <NameDialog rename={naming === "rename" ? current : undefined} onClose={() => setNaming(null)} />
      )}
    </>
  );
}

function NameDialog({
  rename,
  onClose,
}: {
  readonly rename: { readonly id: string; readonly name: string | null } | undefined;
  readonly onClose: () => void;
}) {
  const [name, setName] = useState(rename?.name ?? "");
  const [error, setError] = useState<string>();
  const [busy, setBusy] = useState(false);
  const save = async (): Promise<void> => {
    const text = name.trim();
    if (rename !== undefined && text === "") {
      setError("Enter a session name.");
      return;
    }
    setBusy(true);
    try {
      if (rename === undefined) {
        const created = await api.sessions.createSession(text === "" ? {} : { body: { name: text } });
        await openSession(created.id);
      } else {
        await api.sessions.updateSession({ params: { id: rename.id }, body: { name: text } });
      }
      await queryClient.invalidateQueries({ queryKey: ["sessions"] });
      onClose();
    } catch (caught) {
      setError(errorText(caught));
      setBusy(false);
    }
  };
  return (
    <Dialog
      open
      onClose={onClose}
      onSubmit={() => void save()}
      title={rename === undefined ? "New session" : "Rename session"}
      {...(rename === undefined
        ? { description: "New traffic is recorded into it; the current session is kept." }
        : {})}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary" disabled={busy}>
            {rename === undefined ? "Create and record" : "Rename"}
          </Button>
        </>
      }
    >
      <Field label="Name" error={error}>
        <TextInput
          maxLength={255}
          value={name}
          onChange={(event) => setName(event.target.value)}
          placeholder="Checkout bug"
        />
      </Field>
    </Dialog>
  );
}
