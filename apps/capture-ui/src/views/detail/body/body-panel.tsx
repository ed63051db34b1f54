import type { RequestData, ResponseData } from "@headworks/capture-contract";
import { ChevronDown, ChevronUp, Copy, Download, Search, WrapText, X } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import type { ReactNode } from "react";
import { operationUrl, operations } from "../../../api.ts";
import { Button, IconButton } from "../../../ui/button.tsx";
import { copyText } from "../../../ui/copy.ts";
import { TextInput } from "../../../ui/field.tsx";
import { formatBytes, formatCount } from "../../../ui/format.ts";
import { Menu } from "../../../ui/menu.tsx";
import { Segmented } from "../../../ui/segmented.tsx";
import { EmptyState, Spinner } from "../../../ui/states.tsx";
import { Tag } from "../../../ui/tag.tsx";
import { toast } from "../../../ui/toast.tsx";
import { headerValues } from "../headers/header-groups.ts";
import { useDetailMemory } from "../detail-memory.ts";
import styles from "./body.module.css";
import type { LayerName } from "./body-calls.ts";
import type { BodyClient } from "./body-client.ts";
import type { BodyProgress } from "./body-document.ts";
import { KIND_VIEWS, VIEW_LABELS } from "./body-format.ts";
import type { BodyViewName } from "./body-format.ts";
import { FormViewer, PartsViewer, PreviewViewer } from "./content-viewers.tsx";
import { HexViewer } from "./hex-viewer.tsx";
import { ImageViewer, MediaViewer } from "./media-viewer.tsx";
import { TableViewer } from "./table-viewer.tsx";
import { TextViewer } from "./text-viewer.tsx";
import { TreeViewer } from "./tree-viewer.tsx";
import { useBody } from "./use-body.tsx";
import { useSearch } from "./use-search.tsx";
import type { BodySearch } from "./use-search.tsx";

type Message = Pick<
  RequestData | ResponseData,
  "headers_list" | "content_type" | "body_state" | "body_size" | "body_stored_size"
>;
export type Side = "request" | "response";

/** The body of one side: nothing, a reason why it is not there, or its viewers. */
export function BodyPanel({
  entryId,
  side,
  message,
}: {
  readonly entryId: string;
  readonly side: Side;
  readonly message: Message;
}) {
  if (message.body_state === "not_stored") {
    return (
      <BodyFrame side={side} title="Body">
        <EmptyState title="The body was not stored">
          {formatBytes(message.body_size)} went through. Storing bodies is switched off, or storage could not keep up at
          that moment.
        </EmptyState>
      </BodyFrame>
    );
  }
  if (message.body_state === "none" || message.body_stored_size === 0) {
    return (
      <BodyFrame side={side} title="Body">
        <p className={styles["noBody"]}>The {side} has no body.</p>
      </BodyFrame>
    );
  }
  return <StoredBody entryId={entryId} side={side} message={message} />;
}

function BodyFrame({
  side,
  title,
  tools,
  children,
}: {
  readonly side: Side;
  readonly title: ReactNode;
  readonly tools?: ReactNode;
  readonly children: ReactNode;
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
  entryId,
  side,
  message,
}: {
  readonly entryId: string;
  readonly side: Side;
  readonly message: Message;
}) {
  const bodyUrl = (decoded: boolean, download = false): string =>
    operationUrl(operations.traffic.getTrafficBody, {
      params: { id: entryId, side },
      query: { decoded, ...(download ? { download } : {}) },
    });
  const body = useBody(bodyUrl(true), message.content_type, `${message.body_state} ${message.body_stored_size}`);
  const { client, progress } = body;
  const views = useDetailMemory((memory) => memory.views);
  const wrap = useDetailMemory((memory) => memory.wrap);
  const [searching, setSearching] = useState(false);
  const kind = progress?.kind ?? "empty";
  const offered = KIND_VIEWS[kind];
  const chosen = views[kind];
  const view: BodyViewName | null = chosen !== undefined && offered.includes(chosen) ? chosen : (offered[0] ?? null);
  const layer: LayerName | null = view === "pretty" || view === "raw" ? view : null;
  const search = useSearch(
    client,
    searching ? layer : null,
    `${progress?.layout ?? 0} ${progress?.done === true} ${progress?.prettyRows ?? 0}`,
    body.reopen,
  );
  const coding = headerValues(message.headers_list, "content-encoding").join(", ");
  const openSearch = (): void => {
    if (layer === null && offered.includes("raw")) choose(offered.includes("pretty") ? "pretty" : "raw");
    setSearching(true);
  };
  const choose = (next: BodyViewName): void => {
    useDetailMemory.setState({ views: { ...views, [kind]: next } });
  };

  const copyAll = async (): Promise<void> => {
    const text = client === null ? null : await client.call("text", [layer ?? "raw"]);
    if (text === null)
      toast({ tone: "error", title: "The body is too large for the clipboard", text: "Download it instead." });
    else await copyText(text, "Body");
  };
  const download = (decoded: boolean): void => {
    const link = document.createElement("a");
    link.href = bodyUrl(decoded, true);
    link.download = "";
    link.click();
  };

  return (
    // Ctrl+F inside a body means the body.
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
          <>
            {view !== null && (
              <div className={styles["views"]}>
                <Segmented
                  label={`View of the ${side} body`}
                  value={view}
                  options={offered.map((name) => ({ value: name, label: VIEW_LABELS[name] }))}
                  onChange={choose}
                />
              </div>
            )}
            <div className={styles["tools"]}>
              <IconButton
                label="Search in the body"
                keys="Ctrl F"
                icon={<Search size={14} />}
                pressed={searching}
                onClick={() => (searching ? setSearching(false) : openSearch())}
              />
              {layer !== null && (
                <IconButton
                  label="Wrap long lines"
                  icon={<WrapText size={14} />}
                  pressed={wrap}
                  onClick={() => useDetailMemory.setState({ wrap: !wrap })}
                />
              )}
              <IconButton label="Copy the body" icon={<Copy size={14} />} onClick={() => void copyAll()} />
              <Menu
                align="end"
                trigger={<IconButton label="Download the body" icon={<Download size={14} />} />}
                items={() => [
                  { kind: "item", label: "Decoded", detail: "Content coding removed", onSelect: () => download(true) },
                  {
                    kind: "item",
                    label: "As received",
                    detail: coding === "" ? "The stored bytes" : `Still ${coding}`,
                    onSelect: () => download(false),
                  },
                ]}
              />
            </div>
          </>
        }
      >
        {searching && layer !== null && <SearchBar search={search} onClose={() => setSearching(false)} />}
        <Notices message={message} progress={progress} onRetry={body.reopen} />
        {client === null || progress === null ? (
          <div className={styles["loading"]}>
            <Spinner label="Loading the body" />
          </div>
        ) : (
          <div className={styles["view"]}>
            <View
              key={view ?? "none"}
              view={isUndecodable(progress) ? "hex" : view}
              client={client}
              progress={progress}
              search={search}
              side={side}
              message={message}
              bodyUrl={bodyUrl}
              isEncoded={coding !== ""}
            />
          </div>
        )}
      </BodyFrame>
    </div>
  );
}

/** Nothing of the decoded body can be had, only the bytes as they came. */
function isUndecodable(progress: BodyProgress): boolean {
  return progress.loadedBytes === 0 && (progress.error !== null || progress.isBroken);
}

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
  if (coding === "" || decoded === message.body_stored_size)
    return <Tag tone="neutral">{formatBytes(message.body_size)}</Tag>;
  return (
    <Tag
      tone="neutral"
      title={`${coding}: ${formatCount(message.body_stored_size)} bytes received, ${formatCount(decoded)} decoded`}
    >
      {formatBytes(message.body_stored_size)} → {formatBytes(decoded)}
    </Tag>
  );
}

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
  if (message.body_state === "truncated") {
    notices.push(
      <p key="truncated" className={styles["notice"]}>
        Only the first {formatBytes(message.body_stored_size)} of {formatBytes(message.body_size)} were stored; the
        limit is a setting.
      </p>,
    );
  }
  if (progress?.error != null) {
    notices.push(
      <p key="error" className={styles["problem"]} role="alert">
        {progress.loadedBytes === 0
          ? "The body could not be loaded decoded; its bytes are shown as received"
          : "The rest of the body could not be loaded"}
        : {progress.error}
        <Button onClick={onRetry}>Try again</Button>
      </p>,
    );
  }
  if (progress?.isBroken === true && message.body_state !== "truncated") {
    const coding = headerValues(message.headers_list, "content-encoding").join(", ");
    notices.push(
      <p key="broken" className={styles["notice"]}>
        The body is not valid {coding === "" ? "in its content coding" : coding};{" "}
        {progress.loadedBytes === 0 ? "its bytes are shown as received" : "only what could be decoded is shown"}.
      </p>,
    );
  }
  if (progress?.cut === true) {
    notices.push(
      <p key="cut" className={styles["notice"]}>
        Text views hold the first part only; Hex and the download have everything.
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
        aria-label="Loading the body"
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

function View({
  view,
  client,
  progress,
  search,
  side,
  message,
  bodyUrl,
  isEncoded,
}: {
  readonly view: BodyViewName | null;
  readonly client: BodyClient;
  readonly progress: BodyProgress;
  readonly search: BodySearch;
  readonly side: Side;
  readonly message: Message;
  readonly bodyUrl: (decoded: boolean) => string;
  readonly isEncoded: boolean;
}) {
  const totalBytes = progress.totalBytes ?? 0;
  const needsRest = view === "raw" && !progress.done;
  useEffect(() => {
    if (needsRest) client.call("loadRest", []).catch(() => undefined);
  }, [client, needsRest]);
  switch (view) {
    case "pretty":
    case "raw":
      return <TextViewer client={client} progress={progress} layer={view} search={search} label={`${side} body`} />;
    case "tree":
    case "table":
      if (!progress.done) return <EmptyState title="Loading the body" icon={<Spinner />} />;
      if (view === "table") return <TableViewer client={client} label={`${side} body as a table`} />;
      return <TreeViewer client={client} label={`${side} body as a tree`} />;
    case "image":
      return (
        <ImageViewer url={bodyUrl(true)} type={progress.type || "application/octet-stream"} totalBytes={totalBytes} />
      );
    case "media":
      return (
        <MediaViewer
          url={bodyUrl(true)}
          type={progress.type}
          kind={progress.kind === "audio" ? "audio" : "video"}
          totalBytes={totalBytes}
        />
      );
    case "preview":
      return <PreviewViewer client={client} done={progress.done} />;
    case "form":
      return <FormViewer client={client} done={progress.done} />;
    case "multipart":
      return <PartsViewer client={client} done={progress.done} contentType={message.content_type ?? ""} />;
    case "hex":
      return (
        <HexViewer
          bodyUrl={bodyUrl}
          decodedBytes={isUndecodable(progress) ? null : totalBytes}
          storedBytes={message.body_stored_size}
          isEncoded={isEncoded}
          label={`${side} body in hexadecimal`}
        />
      );
    case null:
      return <p className={styles["noBody"]}>The {side} body is empty once it is decoded.</p>;
  }
}

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
        aria-label="Search in the body"
        placeholder="Search in the body"
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
      <IconButton label="Close the search" keys="Esc" icon={<X size={14} />} onClick={onClose} />
    </div>
  );
}
