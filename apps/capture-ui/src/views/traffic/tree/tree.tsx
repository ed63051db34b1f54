import type { TreeNode } from "@headworks/capture-contract";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { ChevronRight } from "lucide-react";
import { useState } from "react";
import type { KeyboardEvent } from "react";
import { api } from "../../../api.ts";
import { usePreferences } from "../../../preferences.ts";
import { classNames } from "../../../ui/class-names.ts";
import { formatBytes, formatCount, formatShare, formatTimeOfDay } from "../../../ui/format.ts";
import { ErrorState, Spinner } from "../../../ui/states.tsx";
import { filterOf } from "../../../queries.ts";
import { refuseUnreadable } from "../query/effective-query.ts";
import styles from "./tree.module.css";

const MAX_SHOWN = 500;

/** Hosts and paths with request counts and errors. Selecting a path filters the list. */
export function TrafficTree({
  q,
  session,
  onChoose,
}: {
  readonly q: string;
  readonly session: string | null;
  readonly onChoose: (host: string, path: string | null) => void;
}) {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const hosts = useQuery({
    queryKey: ["traffic", "tree", q, session],
    queryFn: async ({ signal }) => {
      refuseUnreadable(q);
      return await api.traffic.treeTraffic({ query: filterOf(q, session), signal });
    },
    placeholderData: keepPreviousData,
  });
  if (hosts.isError && hosts.data === undefined) {
    return <ErrorState title="Could not load the tree" error={hosts.error} onRetry={() => void hosts.refetch()} />;
  }
  const toggle = (name: string, wanted: boolean) => {
    const next = new Set(open);
    if (wanted) next.add(name);
    else next.delete(name);
    setOpen(next);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLDivElement>) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined) return;
    const lines = [...event.currentTarget.querySelectorAll<HTMLElement>("[role=treeitem]")];
    const at = lines.findIndex((line) => line === document.activeElement);
    event.preventDefault();
    event.stopPropagation();
    lines[Math.max(0, Math.min(lines.length - 1, at + step))]?.focus();
  };
  return (
    <div className={styles["tree"]}>
      <div className={classNames(styles["line"], styles["head"])} aria-hidden>
        <span />
        <span>Host and path</span>
        <span className={styles["number"]}>Requests</span>
        <span className={styles["number"]}>Errors</span>
        <span className={styles["number"]}>Received</span>
        <span className={styles["number"]}>Last</span>
      </div>
      {hosts.data === undefined && (
        <p className={styles["note"]}>
          <Spinner />
        </p>
      )}
      <div role="tree" tabIndex={-1} aria-label="Hosts and paths" onKeyDown={onKeyDown}>
        {hosts.data?.slice(0, MAX_SHOWN).map((host) => (
          <HostBranch
            key={host.name}
            node={host}
            q={q}
            session={session}
            open={open.has(host.name)}
            onToggle={(wanted) => toggle(host.name, wanted)}
            onChoose={onChoose}
          />
        ))}
      </div>
      {hosts.data !== undefined && hosts.data.length > MAX_SHOWN && (
        <p className={styles["note"]}>
          {formatCount(hosts.data.length - MAX_SHOWN)} more hosts; use the filter to see them.
        </p>
      )}
      {hosts.data?.length === 0 && <p className={styles["note"]}>No matching requests.</p>}
    </div>
  );
}

function Numbers({ node }: { readonly node: TreeNode }) {
  const utc = usePreferences((preferences) => preferences.timeFormat === "utc");
  return (
    <>
      <span className={styles["number"]}>{formatCount(node.count)}</span>
      <span className={classNames(styles["number"], node.errors > 0 && styles["errors"])}>
        {formatShare(node.errors, node.count)}
      </span>
      <span className={styles["number"]}>{formatBytes(node.response_bytes)}</span>
      <span className={styles["number"]}>{formatTimeOfDay(Date.parse(node.last_timestamp), utc).slice(0, 8)}</span>
    </>
  );
}

function HostBranch({
  node,
  q,
  session,
  open,
  onToggle,
  onChoose,
}: {
  readonly node: TreeNode;
  readonly q: string;
  readonly session: string | null;
  readonly open: boolean;
  readonly onToggle: (open: boolean) => void;
  readonly onChoose: (host: string, path: string | null) => void;
}) {
  const paths = useQuery({
    queryKey: ["traffic", "tree", q, session, node.name],
    queryFn: ({ signal }) =>
      api.traffic.treeTraffic({ query: { ...filterOf(q, session), of_host: node.name }, signal }),
    enabled: open,
    placeholderData: keepPreviousData,
  });
  return (
    <>
      <button
        type="button"
        role="treeitem"
        aria-level={1}
        aria-expanded={open}
        aria-selected={false}
        className={styles["line"]}
        onClick={() => onToggle(!open)}
        onDoubleClick={() => onChoose(node.name, null)}
        onKeyDown={(event) => {
          if (event.key === "ArrowRight") onToggle(true);
          if (event.key === "ArrowLeft") onToggle(false);
        }}
      >
        <ChevronRight size={14} className={styles["chevron"]} aria-hidden />
        <span className={classNames(styles["name"], styles["host"])}>{node.name}</span>
        <Numbers node={node} />
      </button>
      {open && paths.isError && <p className={styles["note"]}>Could not load the paths.</p>}
      {open && paths.data === undefined && !paths.isError && (
        <p className={styles["note"]}>
          <Spinner />
        </p>
      )}
      {open &&
        paths.data?.slice(0, MAX_SHOWN).map((path) => (
          <button
            key={path.name}
            type="button"
            role="treeitem"
            aria-level={2}
            aria-selected={false}
            className={classNames(styles["line"], styles["child"])}
            onClick={() => onChoose(node.name, path.name)}
          >
            <span />
            <span className={styles["name"]}>{path.name === "" ? "/" : path.name}</span>
            <Numbers node={path} />
          </button>
        ))}
      {open && paths.data !== undefined && paths.data.length > MAX_SHOWN && (
        <p className={styles["note"]}>
          {formatCount(paths.data.length - MAX_SHOWN)} more paths; use the filter to see them.
        </p>
      )}
    </>
  );
}
