import type { TrafficEntry } from "@headworks/capture-contract";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Copy, X } from "lucide-react";
import { useEffect } from "react";
import type { ReactNode } from "react";
import { ApiFailure, api } from "../../api.ts";
import { listenLive } from "../../live.ts";
import { useAction } from "../../shell/actions.ts";
import { later } from "../../shell/later.tsx";
import { IconButton } from "../../ui/button.tsx";
import { copyText } from "../../ui/copy.ts";
import { formatBytes, formatCount, formatDuration } from "../../ui/format.ts";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import type { TabSpec } from "../../ui/tabs.tsx";
import { Tag } from "../../ui/tag.tsx";
import { useStream } from "../streams/use-stream.ts";
import { prepareWorker } from "./body/spare-worker.ts";
import { CookiesTab } from "./cookies-tab.tsx";
import { cookieCount } from "./cookie-rows.ts";
import styles from "./detail.module.css";
import { neighbourTab, usableTab, useDetailMemory } from "./detail-memory.ts";
import type { DetailTab } from "./detail-memory.ts";
import { tabsOf } from "./detail-tabs.ts";
import { entryFacts, mayStream, methodColor, statusColor, statusText } from "./entry-facts.ts";
import { MessagesTab } from "./messages-tab.tsx";
import { OverviewTab } from "./overview-tab.tsx";
import { ParamsTab } from "./params-tab.tsx";
import { TimingTab } from "./timing-tab.tsx";
import { urlParts } from "./url-parts.ts";

const EntryStream = later(
  async () => (await import("../streams/entry-stream.tsx")).EntryStream,
  <EmptyState icon={<Spinner />} title="" />,
);

// Whoever fetched this code ahead is likely to open an entry.
prepareWorker();

const detailKey = (id: string) => ["entry", id] as const;

/** Everything about one entry; follows its changes while it is in flight. */
export function EntryDetail({
  id,
  onClose,
  layout,
}: {
  readonly id: string;
  readonly onClose: () => void;
  /** Where the pane stands; `full` is alone on a narrow screen. */
  readonly layout: "right" | "bottom" | "full";
}) {
  const client = useQueryClient();
  const query = useQuery({
    queryKey: detailKey(id),
    queryFn: ({ signal }) => api.traffic.getTraffic({ params: { id }, query: { include_bodies: "false" }, signal }),
    // Moving through the list shows the entry before rather than a flash of nothing.
    placeholderData: (previous) => previous,
  });
  useEffect(
    () =>
      listenLive({
        traffic: (events) => {
          const touched = events.some(
            (event) =>
              (event.type === "Updated" && event.data.id === id) ||
              event.type === "Cleared" ||
              (event.type === "Deleted" && event.data.includes(id)),
          );
          if (touched) void client.invalidateQueries({ queryKey: detailKey(id) });
        },
      }),
    [client, id],
  );
  useAction("close", onClose);

  const isGone = query.error instanceof ApiFailure && query.error.status === 404;
  if (isGone) {
    return (
      <Pane layout={layout}>
        <CloseRow onClose={onClose} />
        <EmptyState title="This entry is gone">It was deleted, cleared, or made room for newer ones.</EmptyState>
      </Pane>
    );
  }
  if (query.error !== null) {
    return (
      <Pane layout={layout}>
        <CloseRow onClose={onClose} />
        <ErrorState title="The entry cannot be loaded" error={query.error} onRetry={() => void query.refetch()} />
      </Pane>
    );
  }
  if (query.data === undefined) {
    return (
      <Pane layout={layout}>
        <CloseRow onClose={onClose} />
        <EmptyState title="Loading the entry" icon={<Spinner />} />
      </Pane>
    );
  }
  return (
    <Pane layout={layout}>
      <Headline entry={query.data} onClose={onClose} />
      <EntryTabs entry={query.data} />
    </Pane>
  );
}

function Pane({ layout, children }: { readonly layout: string; readonly children: ReactNode }) {
  return (
    <section className={styles["pane"]} aria-label="Entry" data-layout={layout}>
      {children}
    </section>
  );
}

function CloseRow({ onClose }: { readonly onClose: () => void }) {
  return (
    <div className={styles["head"]}>
      <span />
      <IconButton label="Close the details" keys="Esc" icon={<X size={16} />} onClick={onClose} />
    </div>
  );
}

function Headline({ entry, onClose }: { readonly entry: TrafficEntry; readonly onClose: () => void }) {
  const { request, response } = entry;
  return (
    <header className={styles["head"]}>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard */}
      <h1 className={styles["url"]} tabIndex={0}>
        {urlParts(request.url).map((part, index) => (
          // The pieces of an address stand where they stand.
          <span key={`${index}`} className={part.strong ? undefined : styles["dim"]}>
            {part.text}
          </span>
        ))}
      </h1>
      <div className={styles["headActions"]}>
        <IconButton
          label="Copy the URL"
          keys="U"
          icon={<Copy size={14} />}
          onClick={() => void copyText(request.url, "URL")}
        />
        <IconButton label="Close the details" keys="Esc" icon={<X size={16} />} onClick={onClose} />
      </div>
      <p className={styles["facts"]}>
        <span className={styles["method"]} style={{ color: methodColor(request.method) }}>
          {request.method}
        </span>
        <span className={styles["status"]} style={{ color: statusColor(entry) }}>
          {statusText(entry)}
        </span>
        {entryFacts(entry).map((fact) => (
          <span key={fact}>{fact}</span>
        ))}
        <span title="Request: header fields and body">{formatBytes(entry.request_size)} ↑</span>
        <span title="Response: header fields and body">{formatBytes(entry.response_size)} ↓</span>
        {response !== null && <span>{formatDuration(response.duration_ms)}</span>}
        {entry.is_passthrough && (
          <Tag tone="neutral">{entry.request.http_version === "SOCKS5" ? "SOCKS tunnel" : "tunnel"}</Tag>
        )}
        {entry.modified && <Tag>rewritten</Tag>}
        {entry.source === "slice" && <Tag tone="warning">answered by Weir</Tag>}
        {entry.source === "import" && <Tag tone="neutral">imported</Tag>}
        {entry.tls?.upstream_verified === false && <Tag tone="warning">certificate not verified</Tag>}
        {entry.state === "closed" && <Tag tone="neutral">closed by the client</Tag>}
        {entry.failure !== null && entry.state !== "closed" && <Tag tone="error">{entry.failure.code}</Tag>}
      </p>
    </header>
  );
}

function EntryTabs({ entry }: { readonly entry: TrafficEntry }) {
  const remembered = useDetailMemory((memory) => memory.tab);
  const { data: stream } = useStream(entry.id, mayStream(entry));
  const shown = tabsOf(entry, stream !== undefined);
  const tab = usableTab(remembered, shown);
  const choose = (next: DetailTab): void => {
    useDetailMemory.setState({ tab: next });
  };
  useAction("detail.previousTab", () => choose(neighbourTab(tab, shown, -1)));
  useAction("detail.nextTab", () => choose(neighbourTab(tab, shown, 1)));
  const cookies = cookieCount(entry);
  const specs: Readonly<Record<DetailTab, TabSpec<DetailTab>>> = {
    overview: { value: "overview", label: "Overview", content: () => <OverviewTab key={entry.id} entry={entry} /> },
    messages: { value: "messages", label: "Messages", content: () => <MessagesTab key={entry.id} entry={entry} /> },
    stream: {
      value: "stream",
      label: "Stream",
      count: stream === undefined ? undefined : formatCount(stream.frames_sent + stream.frames_received),
      content: () => stream !== undefined && <EntryStream.View key={stream.id} stream={stream} />,
    },
    params: { value: "params", label: "Params", content: () => <ParamsTab key={entry.id} entry={entry} /> },
    cookies: {
      value: "cookies",
      label: "Cookies",
      count: cookies === 0 ? undefined : cookies,
      content: () => <CookiesTab entry={entry} />,
    },
    timing: { value: "timing", label: "Timing", content: () => <TimingTab entry={entry} /> },
  };
  return <Tabs label="Parts of the entry" value={tab} onChange={choose} tabs={shown.map((name) => specs[name])} />;
}
