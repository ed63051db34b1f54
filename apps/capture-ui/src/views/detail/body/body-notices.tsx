import type { ReactNode } from "react";
import { Button } from "../../../ui/button.tsx";
import { formatBytes, formatCount } from "../../../ui/format.ts";
import { Tag } from "../../../ui/tag.tsx";
import { headerValues } from "../headers/header-groups.ts";
import { isUndecodable } from "./body-view.tsx";
import styles from "./body.module.css";
import type { BodyProgress } from "./body-document.ts";
import type { Message } from "./message-side.ts";

/** Received and decoded size of the body. */
export function BodySize({
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
export function Notices({
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
