import { HOOK_FUNCTIONS, type ScriptExecution } from "@headworks/capture-contract";
import type { ReactNode } from "react";
import { formatDuration } from "../../ui/format.ts";
import { Tag } from "../../ui/tag.tsx";
import styles from "./scripts.module.css";

/** Runs of scripts: hook, duration, changes, error and console. `about` names what differs between the runs. */
export function ExecutionList({
  label,
  executions,
  about,
}: {
  readonly label: string;
  readonly executions: readonly ScriptExecution[];
  readonly about: (execution: ScriptExecution) => ReactNode;
}) {
  return (
    <ol className={styles["executions"]} aria-label={label}>
      {executions.map((execution, index) => (
        <li key={`${execution.timestamp} ${index}`}>
          <div className={styles["executionHead"]}>
            {!execution.success && <Tag tone="error">error</Tag>}
            {execution.hook !== undefined && <Tag tone="neutral">{HOOK_FUNCTIONS[execution.hook]}</Tag>}
            {about(execution)}
            <span className={styles["grow"]} />
            <span className={styles["quiet"]}>{formatDuration(execution.duration_ms)}</span>
          </div>
          <Outcome execution={execution} />
        </li>
      ))}
    </ol>
  );
}

/** What a run did. */
export function Outcome({
  execution: { error, changes, console },
}: {
  readonly execution: Pick<ScriptExecution, "error" | "changes" | "console">;
}) {
  return (
    <>
      {error !== null && <p className={styles["failure"]}>{error}</p>}
      {changes.length > 0 && (
        <ul className={styles["changes"]} aria-label="Changes">
          {changes.map((change, index) => (
            <li key={`${index}`}>{change}</li>
          ))}
        </ul>
      )}
      {console.length > 0 && (
        // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
        <pre className={styles["console"]} aria-label="Console" tabIndex={0} role="group">
          {console.join("\n")}
        </pre>
      )}
    </>
  );
}
