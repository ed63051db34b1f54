import { parseUrlEncoded } from "@headworks/http-fields";
import { Download } from "lucide-react";
import { useEffect, useMemo, useState } from "react";
import { errorText } from "../../../api.ts";
import { IconButton } from "../../../ui/button.tsx";
import { formatBytes } from "../../../ui/format.ts";
import { EmptyState, Spinner } from "../../../ui/states.tsx";
import { ParamTable } from "../param-table.tsx";
import type { BodyClient } from "./body-client.ts";
import type { BodyProgress } from "./body-document.ts";
import type { BodyOwner, BodyViewName, Message } from "./body-format.ts";
import type { PartPreview } from "./body-worker-client.ts";
import styles from "./body.module.css";
import { HexViewer } from "./hex-viewer.tsx";
import { ImageViewer, MediaViewer } from "./media-viewer.tsx";
import { previewDocument, withoutActiveParts } from "./preview-document.ts";
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

/** The raw text of a body small enough for one string. */
function useWholeText(
  client: BodyClient,
  done: boolean,
): { readonly text: string | null; readonly problem: string | null; readonly ready: boolean } {
  const [response, setResponse] = useState<{ readonly text: string | null; readonly problem: string | null } | null>(
    null,
  );
  useEffect(() => {
    if (!done) return undefined;
    let current = true;
    client.call("text", ["raw"]).then(
      (text) =>
        current &&
        setResponse({ text, problem: text === null ? "It is larger than 1 MiB. Use Raw to view it." : null }),
      (error: unknown) => current && setResponse({ text: null, problem: errorText(error) }),
    );
    return () => {
      current = false;
    };
  }, [client, done]);
  return { text: response?.text ?? null, problem: response?.problem ?? null, ready: response !== null };
}

/** Captured HTML as a page without scripts, network, forms and links. */
function PreviewViewer({ client, done }: { readonly client: BodyClient; readonly done: boolean }) {
  const { text, problem, ready } = useWholeText(client, done);
  const page = useMemo(() => {
    if (text === null) return "";
    // A parsed but unattached document loads and runs nothing.
    const parsed = new DOMParser().parseFromString(text, "text/html");
    withoutActiveParts(parsed);
    const doctype = parsed.doctype === null ? "" : "<!doctype html>";
    return previewDocument(doctype + parsed.documentElement.outerHTML);
  }, [text]);
  if (problem !== null) return <EmptyState title="No preview">{problem}</EmptyState>;
  if (!ready) return <EmptyState title="Loading page" icon={<Spinner />} />;
  return (
    <div className={styles["stack"]}>
      <div className={styles["subbar"]}>
        <span className={styles["quiet"]}>Scripts, links, forms and network access are disabled.</span>
      </div>
      <iframe
        className={styles["preview"]}
        title="Preview of the captured page"
        sandbox=""
        srcDoc={page}
        referrerPolicy="no-referrer"
      />
    </div>
  );
}

/** Fields of a URL-encoded form. */
function FormViewer({ client, done }: { readonly client: BodyClient; readonly done: boolean }) {
  const { text, problem, ready } = useWholeText(client, done);
  if (problem !== null) return <EmptyState title="Could not show the form">{problem}</EmptyState>;
  if (!ready) return <EmptyState title="Reading form" icon={<Spinner />} />;
  return (
    <div className={styles["scroll"]}>
      <ParamTable label="Form fields" parameters={parseUrlEncoded(text ?? "")} empty="No form fields." />
    </div>
  );
}

/** Parts of a multipart body with headers, a preview, and a download. */
function PartsViewer({
  client,
  done,
  contentType,
}: {
  readonly client: BodyClient;
  readonly done: boolean;
  readonly contentType: string;
}) {
  const [found, setFound] = useState<{
    readonly parts: readonly PartPreview[];
    readonly problem: string | null;
  } | null>(null);
  useEffect(() => {
    if (!done) return undefined;
    let current = true;
    client.call("parts", [contentType]).then(
      (response) => current && setFound(response),
      (error: unknown) => current && setFound({ parts: [], problem: errorText(error) }),
    );
    return () => {
      current = false;
    };
  }, [client, done, contentType]);
  if (found === null) return <EmptyState title="Reading parts" icon={<Spinner />} />;
  const save = async (part: PartPreview): Promise<void> => {
    const bytes = await client.call("bytes", [part.start, part.end]);
    const url = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
    const link = document.createElement("a");
    link.href = url;
    link.download = (part.filename ?? part.name ?? "part").replaceAll(/[^\w.-]+/gu, "_").slice(-80) || "part";
    link.click();
    URL.revokeObjectURL(url);
  };
  return (
    <div className={styles["scroll"]}>
      {found.problem !== null && <p className={styles["notice"]}>{found.problem}</p>}
      {found.parts.map((part) => (
        <section key={part.start} className={styles["part"]}>
          <h4 className={styles["partHead"]}>
            <span className={styles["partWords"]}>
              <span>{part.name ?? "Unnamed part"}</span>
              {part.filename !== null && <span className={styles["partFile"]}>{part.filename}</span>}
              <span className={styles["quiet"]}>
                {part.contentType ?? "text/plain"} · {formatBytes(part.end - part.start)}
              </span>
            </span>
            <IconButton label="Download part" icon={<Download size={14} />} onClick={() => void save(part)} />
          </h4>
          {part.preview === null ? (
            <p className={styles["quiet"]}>Binary content</p>
          ) : (
            // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
            <pre className={styles["partText"]} tabIndex={0}>
              {part.preview}
              {part.end - part.start > 2000 && "…"}
            </pre>
          )}
        </section>
      ))}
    </div>
  );
}
