import { useState } from "react";
import type { ReactNode } from "react";
import { operationUrl, operations } from "../../../api.ts";
import { copyText } from "../../../ui/copy.ts";
import { formatBytes } from "../../../ui/format.ts";
import { EmptyState, ErrorState, Spinner } from "../../../ui/states.tsx";
import { toast } from "../../../ui/toast.tsx";
import { useDetailMemory } from "../detail-memory.ts";
import { headerValues } from "../headers/header-groups.ts";
import { BodySize, Notices } from "./body-notices.tsx";
import { BodyTools } from "./body-tools.tsx";
import { BodyView, isUndecodable } from "./body-view.tsx";
import styles from "./body.module.css";
import type { LayerName } from "./body-worker-client.ts";
import { KIND_VIEWS } from "./body-format.ts";
import type { BodyViewName } from "./body-format.ts";
import type { BodyOwner, Message, Side } from "./message-side.ts";
import { SearchBar } from "./search-bar.tsx";
import { useBody } from "./use-body.tsx";
import { useSearch } from "./use-search.tsx";

interface BodyProps {
  readonly entryId: string;
  readonly side: Side;
  readonly message: Message;
}

/** The body of one side: nothing, a reason why it is not there, or its viewers. */
export function BodyPanel({ entryId, side, message }: BodyProps) {
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
  // A body that has grown is another body.
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

/** Bytes that are fetched from an address as they are, such as those of one message of a stream. */
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
      toast({ tone: "error", title: "The body is too large for the clipboard", text: "Download it instead." });
    } else await copyText(text, "Body");
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
          <ErrorState title="The body cannot be shown" error={body.failure} onRetry={body.reopen} />
        ) : client === null || progress === null ? (
          <div className={styles["loading"]}>
            <Spinner label="Loading the body" />
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
