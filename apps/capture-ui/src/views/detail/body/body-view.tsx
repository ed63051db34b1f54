import { useEffect } from "react";
import { EmptyState, Spinner } from "../../../ui/states.tsx";
import styles from "./body.module.css";
import type { BodyClient } from "./body-client.ts";
import type { BodyProgress } from "./body-document.ts";
import type { BodyViewName } from "./body-format.ts";
import { FormViewer, PartsViewer, PreviewViewer } from "./content-viewers.tsx";
import { HexViewer } from "./hex-viewer.tsx";
import { ImageViewer, MediaViewer } from "./media-viewer.tsx";
import type { BodyOwner, Message } from "./message-side.ts";
import { TableViewer } from "./table-viewer.tsx";
import { TextViewer } from "./text-viewer.tsx";
import { TreeViewer } from "./tree-viewer.tsx";
import type { BodySearch } from "./use-search.tsx";

/** No decoded bytes are available, only the bytes as received. */
export function isUndecodable(progress: BodyProgress): boolean {
  return progress.loadedBytes === 0 && (progress.error !== null || progress.isBroken);
}

export function BodyView({
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
  readonly side: BodyOwner;
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
      if (!progress.done) return <EmptyState title="Loading body" icon={<Spinner />} />;
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
      return <p className={styles["noBody"]}>The {side} body is empty after decoding.</p>;
  }
}
