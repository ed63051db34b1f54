import { ChevronDown, ChevronUp, Copy, Download, Search, WrapText, X } from "lucide-react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { operations, operationUrl } from "../../../api.ts";
import { Button, IconButton } from "../../../ui/button.tsx";
import { copyText } from "../../../ui/copy.ts";
import { TextInput } from "../../../ui/field.tsx";
import { formatBytes, formatCount } from "../../../ui/format.ts";
import { Menu } from "../../../ui/menu.tsx";
import { Segmented } from "../../../ui/segmented.tsx";
import { EmptyState, ErrorState, Spinner } from "../../../ui/states.tsx";
import { Tag } from "../../../ui/tag.tsx";
import { toast } from "../../../ui/toast.tsx";
import { useDetailMemory } from "../detail-memory.ts";
import { headerValues } from "../headers/header-groups.ts";
import { BodyClient, prepareWorker, takeWorker } from "./body-client.ts";
import type { BodyProgress } from "./body-document.ts";
import { type BodyOwner, type BodyViewName, KIND_VIEWS, type Message, type Side, VIEW_LABELS } from "./body-format.ts";
import { BodyView, isUndecodable } from "./body-view.tsx";
import type { LayerName } from "./body-worker-client.ts";
import styles from "./body.module.css";
import { type BodySearch, useSearch } from "./use-search.tsx";

interface BodyProps {
  readonly entryId: string;
  readonly side: Side;
  readonly message: Message;
}

/** The body of one message: empty, missing with a reason, or its viewers. */
export function BodyPanel({ entryId, side, message }: BodyProps) {
  if (message.body_state === "not_stored") {
    return (
      <BodyFrame side={side} title="Body">
        <EmptyState title="Body not stored">
          {formatBytes(message.body_size)} were forwarded. Body storage is disabled, or storage could not keep up at the
          time.
        </EmptyState>
      </BodyFrame>
    );
  }
  if (message.body_state === "none" || message.body_stored_size === 0) {
    return (
      <BodyFrame
        side={side}
        title={
          <>
            Body <span className={styles["quiet"]}>none</span>
          </>
        }
      />
    );
  }
  // A body that has grown is opened again.
  const revision = `${message.body_state} ${message.body_stored_size}`;
  return (
    <StoredBody
      key={revision}
      side={side}
      message={message}
      bodyUrl={(decoded, download) =>
        operationUrl(operations.traffic.getTrafficBody, {
          params: { id: entryId, side },
          query: { decoded, ...(download ? { download } : {}) },
        })
      }
    />
  );
}

/** Bytes fetched unmodified from a URL, such as one message of a stream. */
export function BytesPanel({ url, message }: { readonly url: string; readonly message: Message }) {
  return <StoredBody key={url} side="message" message={message} bodyUrl={() => url} />;
}

function BodyFrame({
  side,
  title,
  tools,
  children,
}: {
  readonly side: BodyOwner;
  readonly title: ReactNode;
  readonly tools?: ReactNode;
  readonly children?: ReactNode;
}) {
  return (
    <section className={styles["panel"]} aria-label={`Body of the ${side}`}>
      <div className={styles["toolbar"]}>
        <h3 className={styles["title"]}>{title}</h3>
        {tools}
      </div>
      {children}
    </section>
  );
}

function StoredBody({
  side,
  message,
  bodyUrl,
}: {
  readonly side: BodyOwner;
  readonly message: Message;
  readonly bodyUrl: (decoded: boolean, download: boolean) => string;
}) {
  const body = useBody(bodyUrl(true, false), message.content_type);
  const { client, progress } = body;
  const views = useDetailMemory((memory) => memory.views);
  const [searching, setSearching] = useState(false);
  const kind = progress?.kind ?? "empty";
  const offered = KIND_VIEWS[kind];
  const chosen = views[kind];
  const view = chosen !== undefined && offered.includes(chosen) ? chosen : (offered[0] ?? null);
  const layer: LayerName | null = view === "pretty" || view === "raw" ? view : null;
  const search = useSearch(
    client,
    searching ? layer : null,
    `${progress?.layout ?? 0} ${progress?.done === true} ${progress?.prettyRows ?? 0}`,
    body.reopen,
  );
  const coding = headerValues(message.headers_list, "content-encoding").join(", ");
  const choose = (next: BodyViewName): void => {
    useDetailMemory.setState({ views: { ...views, [kind]: next } });
  };
  const openSearch = (): void => {
    if (layer === null && offered.includes("raw")) choose(offered.includes("pretty") ? "pretty" : "raw");
    setSearching(true);
  };
  const copyAll = async (): Promise<void> => {
    const text = client === null ? null : await client.call("text", [layer ?? "raw"]);
    if (text === null) {
      toast({ tone: "error", title: "Body too large for the clipboard", text: "Download it instead." });
    } else await copyText(text, "Body");
  };

  return (
    // Ctrl+F inside a body searches the body.
    // oxlint-disable-next-line jsx-a11y/no-static-element-interactions -- keys bubble here from what is inside
    <div
      className={styles["keys"]}
      onKeyDown={(event) => {
        if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "f") return;
        event.preventDefault();
        event.stopPropagation();
        openSearch();
      }}
    >
      <BodyFrame
        side={side}
        title={
          <>
            Body
            {progress !== null && progress.totalBytes !== null && (
              <BodySize message={message} progress={progress} coding={coding} />
            )}
          </>
        }
        tools={
          <BodyTools
            side={side}
            view={view}
            offered={offered}
            coding={coding}
            searching={searching}
            onChoose={choose}
            onSearch={() => (searching ? setSearching(false) : openSearch())}
            onCopy={() => void copyAll()}
            downloadUrl={(decoded) => bodyUrl(decoded, true)}
          />
        }
      >
        {searching && layer !== null && <SearchBar search={search} onClose={() => setSearching(false)} />}
        <Notices message={message} progress={progress} onRetry={body.reopen} />
        {body.failure !== null ? (
          <ErrorState title="Could not show the body" error={body.failure} onRetry={body.reopen} />
        ) : client === null || progress === null ? (
          <div className={styles["loading"]}>
            <Spinner label="Loading body" />
          </div>
        ) : (
          <div className={styles["view"]}>
            <BodyView
              key={view ?? "none"}
              view={isUndecodable(progress) ? "hex" : view}
              client={client}
              progress={progress}
              search={search}
              side={side}
              message={message}
              bodyUrl={(decoded) => bodyUrl(decoded, false)}
              isEncoded={coding !== ""}
            />
          </div>
        )}
      </BodyFrame>
    </div>
  );
}

/** Search field with options and the number of matches. */
function SearchBar({ search, onClose }: { readonly search: BodySearch; readonly onClose: () => void }) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  const { query, setQuery } = search;
  const count = search.matches.length;
  const status =
    search.problem ??
    (query.text === ""
      ? ""
      : count === 0
        ? "No match"
        : `${formatCount(search.position + 1)} of ${formatCount(count)}${search.more ? "+" : ""}`);
  return (
    <div className={styles["search"]} role="search">
      <TextInput
        ref={input}
        mono
        aria-label="Search body"
        placeholder="Search body"
        value={query.text}
        onChange={(event) => setQuery({ ...query, text: event.target.value })}
        onKeyDown={(event) => {
          if (event.key === "Enter") search.step(event.shiftKey ? -1 : 1);
          else if (event.key === "Escape") onClose();
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      />
      <Button
        variant="ghost"
        aria-label="Match case"
        title="Match case"
        pressed={query.matchCase}
        onClick={() => setQuery({ ...query, matchCase: !query.matchCase })}
      >
        Aa
      </Button>
      <Button
        variant="ghost"
        aria-label="Regular expression"
        title="Regular expression"
        pressed={query.regex}
        onClick={() => setQuery({ ...query, regex: !query.regex })}
      >
        .*
      </Button>
      <output className={search.problem === null ? styles["quiet"] : styles["problemText"]}>{status}</output>
      <span className={styles["grow"]} />
      <IconButton
        label="Previous match"
        keys="Shift Enter"
        icon={<ChevronUp size={14} />}
        disabled={count === 0}
        onClick={() => search.step(-1)}
      />
      <IconButton
        label="Next match"
        keys="Enter"
        icon={<ChevronDown size={14} />}
        disabled={count === 0}
        onClick={() => search.step(1)}
      />
      <IconButton label="Close search" keys="Esc" icon={<X size={14} />} onClick={onClose} />
    </div>
  );
}

/** An open body: the client of its worker, and loading progress. */
interface OpenBody {
  readonly client: BodyClient | null;
  readonly progress: BodyProgress | null;
  /** Set when the worker failed. */
  readonly failure: Error | null;
  /** Reopens it after a failure or a search timeout. */
  readonly reopen: () => void;
}

/** Opens a body in a worker while the component is mounted. */
function useBody(url: string, contentType: string | null): OpenBody {
  const [open, setOpen] = useState<Omit<OpenBody, "reopen">>({ client: null, progress: null, failure: null });
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    const client = new BodyClient(
      takeWorker(),
      { url: new URL(url, location.origin).href, contentType },
      (progress) => setOpen({ client, progress, failure: null }),
      (failure) => setOpen({ client: null, progress: null, failure }),
    );
    return () => client.close();
  }, [url, contentType, attempt]);
  const isDone = open.progress?.done === true;
  useEffect(() => {
    if (isDone) prepareWorker();
  }, [isDone]);
  return { ...open, reopen: () => setAttempt((count) => count + 1) };
}

/** View selection, search, wrapping, copy and download of a body. */
function BodyTools({
  side,
  view,
  offered,
  coding,
  searching,
  onChoose,
  onSearch,
  onCopy,
  downloadUrl,
}: {
  readonly side: BodyOwner;
  readonly view: BodyViewName | null;
  readonly offered: readonly BodyViewName[];
  /** Content coding of the body; empty if none. */
  readonly coding: string;
  readonly searching: boolean;
  readonly onChoose: (view: BodyViewName) => void;
  readonly onSearch: () => void;
  readonly onCopy: () => void;
  readonly downloadUrl: (decoded: boolean) => string;
}) {
  const wrap = useDetailMemory((memory) => memory.wrap);
  const download = (decoded: boolean): void => {
    const link = document.createElement("a");
    link.href = downloadUrl(decoded);
    link.download = "";
    link.click();
  };
  return (
    <>
      {view !== null && (
        <div className={styles["views"]}>
          <Segmented
            label={`View of the ${side} body`}
            value={view}
            options={offered.map((name) => ({ value: name, label: VIEW_LABELS[name] }))}
            onChange={onChoose}
          />
        </div>
      )}
      <div className={styles["tools"]}>
        <IconButton
          label="Search body"
          keys="Ctrl F"
          icon={<Search size={14} />}
          pressed={searching}
          onClick={onSearch}
        />
        {(view === "pretty" || view === "raw") && (
          <IconButton
            label="Wrap long lines"
            icon={<WrapText size={14} />}
            pressed={wrap}
            onClick={() => useDetailMemory.setState({ wrap: !wrap })}
          />
        )}
        <IconButton label="Copy body" icon={<Copy size={14} />} onClick={onCopy} />
        <Menu
          align="end"
          trigger={<IconButton label="Download body" icon={<Download size={14} />} />}
          items={() => [
            { kind: "item", label: "Decoded", detail: "Without content coding", onSelect: () => download(true) },
            {
              kind: "item",
              label: "As received",
              detail: coding === "" ? "Stored bytes" : `Still ${coding}`,
              onSelect: () => download(false),
            },
          ]}
        />
      </div>
    </>
  );
}

/** Received and decoded size of the body. */
function BodySize({
  message,
  progress,
  coding,
}: {
  readonly message: Message;
  readonly progress: BodyProgress;
  readonly coding: string;
}) {
  const decoded = progress.totalBytes ?? 0;
  if (coding === "" || decoded === message.body_stored_size || isUndecodable(progress)) {
    return <Tag tone="neutral">{formatBytes(message.body_size)}</Tag>;
  }
  return (
    <Tag
      tone="neutral"
      title={`${coding}: ${formatCount(message.body_stored_size)} bytes received, ${formatCount(decoded)} decoded`}
    >
      {formatBytes(message.body_stored_size)} → {formatBytes(decoded)}
    </Tag>
  );
}

/** Missing or invalid parts of the body, and loading progress. */
function Notices({
  message,
  progress,
  onRetry,
}: {
  readonly message: Message;
  readonly progress: BodyProgress | null;
  readonly onRetry: () => void;
}) {
  const notices: ReactNode[] = [];
  // Two sizes that format identically are shown in bytes.
  const isNear = formatBytes(message.body_stored_size) === formatBytes(message.body_size);
  const bytesText = (bytes: number): string => (isNear ? `${formatCount(bytes)} bytes` : formatBytes(bytes));
  if (message.body_state === "truncated") {
    notices.push(
      <p key="truncated" className={styles["notice"]}>
        Only the first {bytesText(message.body_stored_size)} of {bytesText(message.body_size)} were stored. You can
        change the limit in Settings.
      </p>,
    );
  }
  if (progress?.error != null) {
    notices.push(
      <p key="error" className={styles["problem"]} role="alert">
        {progress.loadedBytes === 0
          ? "Could not load the decoded body; showing bytes as received"
          : "Could not load the rest of the body"}
        : {progress.error}
        <Button onClick={onRetry}>Try again</Button>
      </p>,
    );
  }
  if (progress?.isBroken === true && message.body_state !== "truncated") {
    const coding = headerValues(message.headers_list, "content-encoding").join(", ");
    notices.push(
      <p key="broken" className={styles["notice"]}>
        The body is not valid {coding === "" ? "for its content coding" : coding};{" "}
        {progress.loadedBytes === 0 ? "showing bytes as received" : "showing only the part that could be decoded"}.
      </p>,
    );
  }
  if (progress?.isAsSent === true) {
    const coding = headerValues(message.headers_list, "content-encoding").join(", ");
    notices.push(
      <p key="as-sent" className={styles["notice"]}>
        Content-Encoding says {coding}, but the body cannot be decoded with it; it is shown as received.
      </p>,
    );
  }
  if (progress?.cut === true) {
    notices.push(
      <p key="cut" className={styles["notice"]}>
        Text views show only the first part; Hex and the download contain the whole body.
      </p>,
    );
  }
  if (progress?.problem != null && message.body_state !== "truncated") {
    notices.push(
      <p key="json" className={styles["notice"]}>
        Not valid JSON at byte {formatCount(progress.problem.offset)}: {progress.problem.message}.
      </p>,
    );
  }
  if (progress !== null && !progress.done && progress.totalBytes !== null) {
    notices.push(
      <div
        key="progress"
        className={styles["progress"]}
        role="progressbar"
        aria-label="Loading body"
        aria-valuemin={0}
        aria-valuemax={progress.totalBytes}
        aria-valuenow={progress.loadedBytes}
      >
        <i style={{ width: `${(progress.loadedBytes / Math.max(1, progress.totalBytes)) * 100}%` }} />
      </div>,
    );
  }
  return notices;
}
