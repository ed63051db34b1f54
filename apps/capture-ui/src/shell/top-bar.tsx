import { useQuery } from "@tanstack/react-query";
import {
  Check,
  ChevronDown,
  Command,
  Copy,
  Keyboard,
  MonitorSmartphone,
  Pencil,
  Play,
  Plus,
  SlidersHorizontal,
} from "lucide-react";
import { useState } from "react";
import { api, errorText } from "../api.ts";
import { useConnection } from "../live.ts";
import { type Density, setPreferences, type Theme, type TimeFormat, usePreferences } from "../preferences.ts";
import {
  captureQuery,
  configQuery,
  healthQuery,
  queryClient,
  runsQuery,
  sessionsQuery,
  statsQuery,
} from "../queries.ts";
import { openSession, viewSession } from "../transfer/open-session.ts";
import { Button, IconButton } from "../ui/button.tsx";
import { classNames } from "../ui/class-names.ts";
import { copyText } from "../ui/copy.ts";
import { Dialog } from "../ui/dialog.tsx";
import { Field, TextInput } from "../ui/field.tsx";
import { formatCount, formatDateTime } from "../ui/format.ts";
import { Menu, type MenuEntry } from "../ui/menu.tsx";
import { Meter } from "../ui/meter.tsx";
import { KeyHint } from "../ui/tag.tsx";
import { toast } from "../ui/toast.tsx";
import { Tooltip } from "../ui/tooltip.tsx";
import { keysOf } from "./actions.ts";
import { ConnectionBadge } from "./connection-badge.tsx";
import { Link } from "./link.tsx";
import { navigate, useLocation } from "./router.ts";
import { PauseSwitch, ServingMark, ThrottleMenu } from "./rule-switches.tsx";
import styles from "./top-bar.module.css";

function Mark() {
  return (
    <svg viewBox="0 0 24 24" fill="none" aria-hidden>
      <path d="M2 6h20v4H2z" fill="var(--accent)" />
      <path
        d="M3 13c2.2 0 2.2 1.6 4.5 1.6S9.7 13 12 13s2.2 1.6 4.5 1.6S18.8 13 21 13M3 18c2.2 0 2.2 1.6 4.5 1.6S9.7 18 12 18s2.2 1.6 4.5 1.6S18.8 18 21 18"
        stroke="var(--accent)"
        strokeWidth="1.8"
        strokeLinecap="round"
      />
    </svg>
  );
}

const THEMES: readonly { readonly value: Theme; readonly label: string }[] = [
  { value: "system", label: "System" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
];
const DENSITIES: readonly { readonly value: Density; readonly label: string }[] = [
  { value: "compact", label: "Compact" },
  { value: "normal", label: "Normal" },
  { value: "comfortable", label: "Comfortable" },
];
const TIMES: readonly { readonly value: TimeFormat; readonly label: string }[] = [
  { value: "local", label: "Local time" },
  { value: "relative", label: "Relative time" },
  { value: "utc", label: "UTC" },
];

function displayMenu(): readonly MenuEntry[] {
  const { theme, density, timeFormat } = usePreferences.getState();
  return [
    { kind: "heading", label: "Theme" },
    { kind: "choice", value: theme, options: THEMES, onChange: (value) => setPreferences({ theme: value as Theme }) },
    { kind: "separator" },
    { kind: "heading", label: "Rows" },
    {
      kind: "choice",
      value: density,
      options: DENSITIES,
      onChange: (value) => setPreferences({ density: value as Density }),
    },
    { kind: "separator" },
    { kind: "heading", label: "Times" },
    {
      kind: "choice",
      value: timeFormat,
      options: TIMES,
      onChange: (value) => setPreferences({ timeFormat: value as TimeFormat }),
    },
  ];
}

function CaptureToggle() {
  const capture = useQuery(captureQuery);
  const recording = capture.data?.capture_enabled;
  const offline = useConnection().state === "offline";
  if (recording === undefined) return null;
  return (
    <Tooltip
      text={
        recording
          ? "Recording traffic. Click to pass it through without recording."
          : "Traffic passes through without being recorded. Click to record."
      }
      keys={keysOf("toggleCapture")}
    >
      <Button
        className={classNames(recording ? styles["recording"] : styles["passing"])}
        aria-pressed={recording}
        disabled={offline}
        onClick={() => void toggleCapture()}
      >
        <span className={styles["recordDot"]} aria-hidden />
        <span className={styles["recordText"]}>{recording ? "Recording" : "Passthrough"}</span>
      </Button>
    </Tooltip>
  );
}

/** Replaces wildcard listen addresses with the address to configure in programs. */
function useProxyAddress(): string | undefined {
  const health = useQuery(healthQuery);
  const config = useQuery(configQuery);
  const address = health.data?.proxy_address;
  if (address !== undefined && address !== "") {
    const bare = address.replace(/^http:\/\//u, "").replace(/\/$/u, "");
    return bare.replace(/^(?:0\.0\.0\.0|\[::\])(?=:)/u, config.data?.shown_host ?? "127.0.0.1");
  }
  return config.data === undefined ? undefined : `${config.data.shown_host}:${config.data.proxy_port}`;
}

function ProxyAddress() {
  const address = useProxyAddress();
  if (address === undefined) return null;
  return (
    <span className={styles["address"]}>
      Proxy&nbsp;<b>{address}</b>
      <IconButton
        label="Copy proxy address"
        icon={<Copy size={13} />}
        onClick={() => void copyText(address, "Address")}
      />
    </span>
  );
}

function Quota() {
  const stats = useQuery({ ...statsQuery, refetchInterval: 10_000 });
  if (stats.data === undefined) return null;
  const { entry_count: count, max_entries: max } = stats.data;
  const isFull = max > 0 && count >= max;
  const text = isFull
    ? "Full: removing oldest"
    : max === 0
      ? `${formatCount(count)} requests`
      : `${formatCount(count)} of ${formatCount(max)} requests`;
  const hint =
    max === 0
      ? "No limit."
      : isFull
        ? "The oldest requests are removed to make room for new ones. Raise max_requests in Settings, or start a new session."
        : "When the session is full, the oldest requests are removed to make room for new ones.";
  return (
    <Tooltip text={hint}>
      <div className={styles["meter"]}>
        <Meter value={count} max={max} label="Requests in the session" text={text} />
      </div>
    </Tooltip>
  );
}

/** Reports a lost connection on every screen; Traffic also shows the healthy state. */
function ConnectionProblem() {
  const { state } = useConnection();
  const { path } = useLocation();
  const isLost = state === "reconnecting" || state === "offline";
  return isLost && path !== "/traffic" ? <ConnectionBadge /> : null;
}

/** The top bar: recording state, session, proxy address, and menus. */
export function TopBar({ onCommands, onKeys }: { readonly onCommands: () => void; readonly onKeys: () => void }) {
  return (
    <header className={styles["bar"]}>
      <Link href="/traffic" className={styles["brand"]} aria-label="Weir">
        <Mark />
      </Link>
      <CaptureToggle />
      <SessionSwitcher />
      <ProxyAddress />
      <Quota />
      <span className={styles["spacer"]} />
      <div className={styles["tools"]}>
        <ConnectionProblem />
        <ServingMark />
        <PauseSwitch />
        <ThrottleMenu />
        <Button
          className={styles["connect"]}
          icon={<MonitorSmartphone size={14} />}
          aria-label="Connect a device"
          onClick={() => navigate("/connect")}
        >
          <span className={classNames(styles["optional"], styles["text"])}>Connect a device</span>
        </Button>
        <Button icon={<Command size={14} />} aria-label={`Commands ${keysOf("palette")}`} onClick={onCommands}>
          <span className={classNames(styles["optional"], styles["text"])}>
            Commands <KeyHint keys={keysOf("palette")} />
          </span>
        </Button>
        <Menu
          align="end"
          items={displayMenu}
          trigger={<IconButton label="Display" icon={<SlidersHorizontal size={15} />} />}
        />
        <IconButton
          className={styles["connect"]}
          label="Keyboard shortcuts"
          keys="?"
          icon={<Keyboard size={15} />}
          onClick={onKeys}
        />
      </div>
    </header>
  );
}

export async function toggleCapture(): Promise<void> {
  const before = queryClient.getQueryData(captureQuery.queryKey);
  try {
    // Set rather than flipped, so that two windows toggling at once agree.
    const status = await api.capture.toggleCapture(
      before === undefined ? {} : { body: { enabled: !before.capture_enabled } },
    );
    queryClient.setQueryData(captureQuery.queryKey, status);
    toast({
      key: "capture",
      title: status.capture_enabled ? "Recording" : "Passthrough",
      text: status.capture_enabled ? "Traffic is recorded." : "Traffic passes through without being recorded.",
      durationMs: 2500,
    });
  } catch (error) {
    toast({ tone: "error", title: "Could not change the mode", text: errorText(error) });
  }
}

const MAX_SHOWN = 12;

/** The active session, with a menu to switch or create sessions. */
function SessionSwitcher() {
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
