import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Copy, X } from "lucide-react";
import { Fragment, type ReactNode, useEffect } from "react";
import type { TrafficEntry } from "@headworks/capture-contract";
import { parseQuery, parseUrlEncoded, utf8Reading } from "@headworks/http-fields";
import { api, ApiFailure } from "../../api.ts";
import { listenLive } from "../../live.ts";
import { useAction } from "../../shell/actions.ts";
import { lazyView } from "../../shell/lazy-view.tsx";
import { IconButton } from "../../ui/button.tsx";
import { copyText } from "../../ui/copy.ts";
import { DataTable } from "../../ui/data-table.tsx";
import { formatBytes, formatCount, formatDateTime, formatDuration } from "../../ui/format.ts";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { Tabs, type TabSpec } from "../../ui/tabs.tsx";
import { Tag } from "../../ui/tag.tsx";
import { useStream } from "../streams/use-stream.ts";
import { prepareWorker } from "./body/body-client.ts";
import { type DetailTab, neighbourTab, usableTab, useDetailMemory } from "./detail-memory.ts";
import styles from "./detail.module.css";
import { entryFacts, mayStream, methodColor, statusColor, statusText } from "./entry-facts.ts";
import { MessagesTab } from "./messages-tab.tsx";
import { OverviewTab } from "./overview-tab.tsx";
import { ParamTable } from "./param-table.tsx";
import { missingStages, timingBars } from "./timing-bars.ts";
import {
  cookieConcerns,
  cookieCount,
  cookieLife,
  hasForm,
  receivedCookies,
  sentCookies,
  tabsOf,
  urlParts,
} from "./detail-tabs.ts";

/** Larger forms are shown by the body viewers only. */
const MAX_FORM_BYTES = 1_048_576;

const EntryStream = lazyView(
  async () => (await import("../streams/entry-stream.tsx")).EntryStream,
  <EmptyState icon={<Spinner />} title="" />,
);

// Loading this code ahead means an entry is about to be opened.
prepareWorker();

const detailKey = (id: string) => ["entry", id] as const;

/** Details of one entry; follows changes while it is in flight. */
export function EntryDetail({
  id,
  onClose,
  layout,
}: {
  readonly id: string;
  readonly onClose: () => void;
  /** Position of the pane; `full` covers a narrow screen. */
  readonly layout: "right" | "bottom" | "full";
}) {
  const client = useQueryClient();
  const query = useQuery({
    queryKey: detailKey(id),
    queryFn: ({ signal }) => api.traffic.getTraffic({ params: { id }, query: { include_bodies: "false" }, signal }),
    // Keeps showing the previous entry while the next one loads.
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
        <EmptyState title="This request no longer exists">
          It was deleted, cleared, or removed to make room for newer requests.
        </EmptyState>
      </Pane>
    );
  }
  if (query.error !== null) {
    return (
      <Pane layout={layout}>
        <CloseRow onClose={onClose} />
        <ErrorState title="Could not load the request" error={query.error} onRetry={() => void query.refetch()} />
      </Pane>
    );
  }
  if (query.data === undefined) {
    return (
      <Pane layout={layout}>
        <CloseRow onClose={onClose} />
        <EmptyState title="Loading request" icon={<Spinner />} />
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
    <section className={styles["pane"]} aria-label="Request details" data-layout={layout}>
      {children}
    </section>
  );
}

function CloseRow({ onClose }: { readonly onClose: () => void }) {
  return (
    <div className={styles["head"]}>
      <span />
      <IconButton label="Close details" keys="Esc" icon={<X size={16} />} onClick={onClose} />
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
          // URL parts do not move, so the index identifies them.
          <span key={`${index}`} className={part.strong ? undefined : styles["dim"]}>
            {part.text}
          </span>
        ))}
      </h1>
      <div className={styles["headActions"]}>
        <IconButton
          label="Copy URL"
          keys="U"
          icon={<Copy size={14} />}
          onClick={() => void copyText(request.url, "URL")}
        />
        <IconButton label="Close details" keys="Esc" icon={<X size={16} />} onClick={onClose} />
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
        <span title="Request size: headers and body">{formatBytes(entry.request_size)} ↑</span>
        <span title="Response size: headers and body">{formatBytes(entry.response_size)} ↓</span>
        {response !== null && <span>{formatDuration(response.duration_ms)}</span>}
        {entry.is_passthrough && (
          <Tag tone="neutral">{entry.request.http_version === "SOCKS5" ? "SOCKS tunnel" : "tunnel"}</Tag>
        )}
        {entry.modified && <Tag>modified</Tag>}
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
  return <Tabs label="Request views" value={tab} onChange={choose} tabs={shown.map((name) => specs[name])} />;
}

/** Cookies in both directions with their attributes. */
function CookiesTab({ entry }: { readonly entry: TrafficEntry }) {
  const sent = sentCookies(entry);
  const received = receivedCookies(entry);
  const receivedMs = Date.parse(entry.timestamp) + (entry.response?.duration_ms ?? 0);
  const isSecure = /^(?:https|wss):/iu.test(entry.request.url);
  return (
    <div className={styles["body"]}>
      <section className={styles["section"]}>
        <h2>
          Sent with the request <span className={styles["quiet"]}>{sent.length}</span>
        </h2>
        {sent.length === 0 ? (
          <p className={styles["none"]}>No cookies were sent.</p>
        ) : (
          <DataTable
            label="Sent cookies"
            className={styles["pairs"]}
            titles={["Name", "Value"]}
            hasRowTitles
            rows={sent.map(({ name, value }) => [name, utf8Reading(value) ?? value])}
          />
        )}
      </section>
      <section className={styles["section"]}>
        <h2>
          Set by the response <span className={styles["quiet"]}>{received.length}</span>
        </h2>
        {received.length === 0 ? (
          <p className={styles["none"]}>No cookies were set.</p>
        ) : (
          // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
          <div className={styles["cookieTable"]} tabIndex={0} role="group" aria-label="Set cookies">
            <table className={styles["pairs"]}>
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col">Value</th>
                  <th scope="col">Lifetime</th>
                  <th scope="col">Domain and path</th>
                  <th scope="col">Attributes</th>
                </tr>
              </thead>
              <tbody>
                {received.map((cookie, index) => {
                  const concerns = cookieConcerns(cookie, isSecure);
                  return (
                    <Fragment key={`${index}-${cookie.name}`}>
                      <tr>
                        <th scope="row">{cookie.name}</th>
                        <td>{utf8Reading(cookie.value) ?? cookie.value}</td>
                        <td>{cookieLife(cookie, receivedMs)}</td>
                        <td>
                          {cookie.domain ?? "this host"}
                          {cookie.path === undefined ? "" : `, ${cookie.path}`}
                        </td>
                        <td>
                          <span className={styles["cookieTags"]}>
                            {cookie.httpOnly && <Tag tone="ok">HttpOnly</Tag>}
                            {cookie.secure && <Tag tone="ok">Secure</Tag>}
                            {cookie.sameSite !== undefined && <Tag tone="neutral">SameSite={cookie.sameSite}</Tag>}
                            {cookie.partitioned && <Tag tone="neutral">Partitioned</Tag>}
                          </span>
                        </td>
                      </tr>
                      {concerns.length > 0 && (
                        // In a row of their own: a column of sentences would be too wide.
                        <tr className={styles["concerns"]}>
                          <td colSpan={5}>{concerns.join("\n")}</td>
                        </tr>
                      )}
                    </Fragment>
                  );
                })}
              </tbody>
            </table>
          </div>
        )}
      </section>
    </div>
  );
}

/** Parameters of the query, and of a form in the request body. */
function ParamsTab({ entry }: { readonly entry: TrafficEntry }) {
  const { request } = entry;
  return (
    <div className={styles["body"]}>
      <section className={styles["section"]}>
        <ParamTable label="Query" parameters={parseQuery(request.url)} empty="The URL has no query." />
      </section>
      {hasForm(request) && (
        <section className={styles["section"]}>
          {request.body_stored_size > MAX_FORM_BYTES ? (
            <p className={styles["none"]}>
              The form is {formatBytes(request.body_stored_size)}; view it in the Messages tab.
            </p>
          ) : (
            <FormParams id={entry.id} />
          )}
        </section>
      )}
    </div>
  );
}

function FormParams({ id }: { readonly id: string }) {
  const form = useQuery({
    queryKey: ["entry", id, "form"],
    queryFn: async ({ signal }) => {
      const response = await api.traffic.getTrafficBody({
        params: { id, side: "request" },
        query: { decoded: "true", charset: "utf-8" },
        signal,
      });
      return response.text();
    },
  });
  if (form.error !== null) {
    return <ErrorState title="Could not read the form" error={form.error} onRetry={() => void form.refetch()} />;
  }
  if (form.data === undefined) return <Spinner label="Reading form" />;
  return <ParamTable label="Form" parameters={parseUrlEncoded(form.data)} empty="No form fields." />;
}

/** Stages of the exchange as a waterfall with durations and explanations. */
function TimingTab({ entry }: { readonly entry: TrafficEntry }) {
  const { bars, totalMs } = timingBars(entry.timings);
  const missing = missingStages(entry.timings);
  if (bars.length === 0) {
    return entry.state === "pending" ? (
      <EmptyState title="In progress" icon={<Spinner />}>
        Stages are shown when they complete.
      </EmptyState>
    ) : (
      <EmptyState title="No timings">No timings were recorded for this request.</EmptyState>
    );
  }
  return (
    <div className={styles["body"]}>
      <table className={styles["waterfall"]} aria-label="Stages">
        <thead className="visually-hidden">
          <tr>
            <th scope="col">Stage</th>
            <th scope="col">Position</th>
            <th scope="col">Start</th>
            <th scope="col">Duration</th>
          </tr>
        </thead>
        <tbody>
          {bars.map((bar) => (
            <tr key={bar.stage}>
              <th scope="row">{bar.label}</th>
              <td style={{ width: "70%" }}>
                <div className={styles["track"]}>
                  <i style={{ left: `${bar.left}%`, width: `${bar.width}%`, background: `var(--${bar.stage})` }} />
                </div>
                <small>{bar.explanation}</small>
              </td>
              <td className={styles["num"]}>
                <span className={styles["quiet"]}>+{formatDuration(bar.startMs)}</span>
              </td>
              <td className={styles["num"]}>{formatDuration(bar.durationMs)}</td>
            </tr>
          ))}
          <tr>
            <th scope="row">Total</th>
            <td colSpan={2}>{missing === null ? "" : <small>{missing}.</small>}</td>
            <td className={styles["num"]}>
              <b>{formatDuration(totalMs)}</b>
            </td>
          </tr>
        </tbody>
      </table>
      <p className={styles["none"]}>Started {formatDateTime(Date.parse(entry.timestamp))}, local time.</p>
    </div>
  );
}
