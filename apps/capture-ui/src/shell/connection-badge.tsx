import { useEffect, useState } from "react";
import { retryNow, useConnection } from "../live.ts";
import { classNames } from "../ui/class-names.ts";
import { Tooltip } from "../ui/tooltip.tsx";
import styles from "./connection-badge.module.css";

function useSecondsTo(atMs: number | undefined): number {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    if (atMs === undefined) return undefined;
    const update = (): void => setSeconds(Math.max(0, Math.ceil((atMs - Date.now()) / 1000)));
    update();
    const timer = window.setInterval(update, 500);
    return () => window.clearInterval(timer);
  }, [atMs]);
  return seconds;
}

/** State of the live channel and the time of the next attempt. */
export function ConnectionBadge() {
  const connection = useConnection();
  const seconds = useSecondsTo("retryAtMs" in connection ? connection.retryAtMs : undefined);
  if (connection.state === "live" || connection.state === "connecting") {
    const live = connection.state === "live";
    return (
      <output className={classNames(styles["badge"], live ? styles["live"] : styles["trying"])}>
        <span className={styles["dot"]} aria-hidden />
        {live ? "Live" : "Connecting"}
      </output>
    );
  }
  const offline = connection.state === "offline";
  return (
    <Tooltip
      text={
        offline
          ? "Weir has not responded for a while. Is it still running?"
          : "Live updates are interrupted. Missed traffic is loaded after reconnecting."
      }
      side="top"
    >
      <button
        type="button"
        className={classNames(styles["badge"], offline ? styles["offline"] : styles["trying"])}
        onClick={retryNow}
      >
        <span className={styles["dot"]} aria-hidden />
        {offline ? "Offline" : "Reconnecting"}
        <span className={styles["when"]}>{seconds > 0 ? `retry in ${seconds} s` : "now"}</span>
      </button>
    </Tooltip>
  );
}
