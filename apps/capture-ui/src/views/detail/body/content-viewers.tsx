import { Download } from "lucide-react";
import { useEffect, useMemo, useState } from "react";
import { parseUrlEncoded } from "@headworks/http-fields";
import { errorText } from "../../../api.ts";
import { IconButton } from "../../../ui/button.tsx";
import { formatBytes } from "../../../ui/format.ts";
import { EmptyState, Spinner } from "../../../ui/states.tsx";
import { ParamTable } from "../param-table.tsx";
import type { BodyClient } from "./body-client.ts";
import type { PartPreview } from "./body-worker-client.ts";
import styles from "./body.module.css";
import { previewDocument, withoutActiveParts } from "./preview-document.ts";

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
export function PreviewViewer({ client, done }: { readonly client: BodyClient; readonly done: boolean }) {
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
export function FormViewer({ client, done }: { readonly client: BodyClient; readonly done: boolean }) {
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
export function PartsViewer({
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
