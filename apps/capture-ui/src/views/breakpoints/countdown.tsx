import { useEffect, useState } from "react";
import { formatAgo } from "../../ui/format.ts";
import styles from "./breakpoints.module.css";
import { secondsLeft } from "./paused-draft.ts";

/** Time until a paused message continues, or the time since it was paused. */
export function Countdown({ deadline, since }: { readonly deadline: string | null; readonly since: string }) {
  const [nowMs, setNowMs] = useState(() => Date.now());
  useEffect(() => {
    const timer = window.setInterval(() => setNowMs(Date.now()), 500);
    return () => window.clearInterval(timer);
  }, []);
  const left = secondsLeft(deadline, nowMs);
  if (left === null) return <span className={styles["quiet"]}>{formatAgo(Date.parse(since), nowMs)}</span>;
  return (
    <span
      className={styles["countdown"]}
      data-soon={left <= 5 || undefined}
      title="Time until it continues automatically"
    >
      {left} s left
    </span>
  );
}
