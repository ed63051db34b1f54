import { useEffect, useState } from "react";
import { classNames } from "../../../ui/class-names.ts";
import { formatBytes } from "../../../ui/format.ts";
import { Segmented } from "../../../ui/segmented.tsx";
import { EmptyState, Spinner } from "../../../ui/states.tsx";
import styles from "./body.module.css";

/** Larger images and media are only offered for download. */
const MAX_OBJECT_BYTES = 128 * 1024 * 1024;

/** An image with its dimensions. SVG is shown as an image too, where browsers run no scripts and load nothing. */
export function ImageViewer({
  url,
  type,
  totalBytes,
}: {
  readonly url: string;
  readonly type: string;
  readonly totalBytes: number;
}) {
  if (totalBytes > MAX_OBJECT_BYTES) return <TooLarge totalBytes={totalBytes} />;
  return <Picture url={url} type={type} />;
}

function Picture({ url, type }: { readonly url: string; readonly type: string }) {
  const object = useObjectUrl(url, type);
  const [size, setSize] = useState<{ readonly width: number; readonly height: number } | null>(null);
  const [broken, setBroken] = useState(false);
  const [fit, setFit] = useState<"fit" | "actual">("fit");
  if (object.state === "loading") return <EmptyState title="Loading image" icon={<Spinner />} />;
  if (object.state === "failed") return <EmptyState title="Could not load the image">{object.problem}</EmptyState>;
  if (broken) {
    return (
      <EmptyState title="The browser cannot display this image">
        The body is not a valid image of type {type}, or it is incomplete. Use Hex to view it.
      </EmptyState>
    );
  }
  return (
    <div className={styles["stack"]}>
      <div className={styles["subbar"]}>
        <span className={styles["quiet"]}>
          {size === null ? " " : size.width === 0 ? "no intrinsic size · " : `${size.width} × ${size.height} · `}
          {type} · {formatBytes(object.sizeBytes)}
        </span>
        <span className={styles["grow"]} />
        <Segmented
          label="Size"
          value={fit}
          options={[
            { value: "fit", label: "Fit" },
            { value: "actual", label: "100 %" },
          ]}
          onChange={setFit}
        />
      </div>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard */}
      <div className={styles["canvas"]} tabIndex={0} role="group" aria-label="Image">
        <img
          src={object.url}
          alt="Captured body"
          className={classNames(fit === "fit" && styles["fitted"])}
          onLoad={(event) =>
            setSize({ width: event.currentTarget.naturalWidth, height: event.currentTarget.naturalHeight })
          }
          onError={() => setBroken(true)}
        />
      </div>
    </div>
  );
}

/** Audio or video with the browser's controls. */
export function MediaViewer({
  url,
  type,
  kind,
  totalBytes,
}: {
  readonly url: string;
  readonly type: string;
  readonly kind: "audio" | "video";
  readonly totalBytes: number;
}) {
  if (totalBytes > MAX_OBJECT_BYTES) return <TooLarge totalBytes={totalBytes} />;
  return <Recording url={url} type={type} kind={kind} />;
}

function Recording({
  url,
  type,
  kind,
}: {
  readonly url: string;
  readonly type: string;
  readonly kind: "audio" | "video";
}) {
  const object = useObjectUrl(url, type);
  const [broken, setBroken] = useState(false);
  if (object.state === "loading") return <EmptyState title="Loading media" icon={<Spinner />} />;
  if (object.state === "failed") {
    return <EmptyState title="Could not load the media">{object.problem}</EmptyState>;
  }
  if (broken) {
    return (
      <EmptyState title="The browser cannot play this media">
        Its type is {type}. It may be a segment of a longer stream; download it to play it elsewhere.
      </EmptyState>
    );
  }
  const Player = kind;
  return (
    <div className={styles["canvas"]}>
      <Player controls src={object.url} className={styles["fitted"]} onError={() => setBroken(true)} />
    </div>
  );
}

function TooLarge({ totalBytes }: { readonly totalBytes: number }) {
  return <EmptyState title="Too large to display">{formatBytes(totalBytes)}; download it to view it.</EmptyState>;
}

/** Object URL of a fetched body, or the error. */
type ObjectUrl =
  | { readonly state: "loading" }
  | { readonly state: "ready"; readonly url: string; readonly sizeBytes: number }
  | { readonly state: "failed"; readonly problem: string };

/** Fetches a body as a blob of the given type, never of the captured type. */
function useObjectUrl(url: string, type: string): ObjectUrl {
  const [object, setObject] = useState<ObjectUrl>({ state: "loading" });
  useEffect(() => {
    const stop = new AbortController();
    let created: string | null = null;
    const load = async (): Promise<void> => {
      setObject({ state: "loading" });
      try {
        const response = await fetch(url, { signal: stop.signal });
        if (!response.ok) throw new Error(`Weir responded with ${response.status}`);
        const blob = new Blob([await response.arrayBuffer()], { type });
        if (stop.signal.aborted) return;
        created = URL.createObjectURL(blob);
        setObject({ state: "ready", url: created, sizeBytes: blob.size });
      } catch (error) {
        if (!stop.signal.aborted) {
          setObject({ state: "failed", problem: error instanceof Error ? error.message : String(error) });
        }
      }
    };
    void load();
    return () => {
      stop.abort();
      if (created !== null) URL.revokeObjectURL(created);
    };
  }, [url, type]);
  return object;
}
