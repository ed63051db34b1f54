import type { PausedItem } from "@headworks/capture-contract";
import { ChevronDown } from "lucide-react";
import { keysOf } from "../../shell/actions.ts";
import { Button } from "../../ui/button.tsx";
import { Menu } from "../../ui/menu.tsx";
import { KeyHint } from "../../ui/tag.tsx";
import styles from "./breakpoints.module.css";
import { Countdown } from "./countdown.tsx";

/** What can become of the chosen item. */
export function DecisionBar({
  item,
  isChanged,
  isAnswering,
  isHeld,
  problem,
  busy,
  onSend,
  onAllow,
  onReject,
  onRespond,
  onBack,
  onReset,
  onAllowAll,
}: {
  readonly item: PausedItem;
  readonly isChanged: boolean;
  readonly isAnswering: boolean;
  /** It is being edited, and gets more time meanwhile. */
  readonly isHeld: boolean;
  readonly problem: string | null;
  readonly busy: boolean;
  readonly onSend: () => void;
  readonly onAllow: () => void;
  readonly onReject: () => void;
  readonly onRespond: () => void;
  readonly onBack: () => void;
  readonly onReset: () => void;
  readonly onAllowAll: (disable: boolean) => void;
}) {
  return (
    <div className={styles["decisions"]} role="toolbar" aria-label="Decision">
      {isAnswering ? (
        <>
          <Button variant="primary" disabled={busy || problem !== null} onClick={onSend}>
            Send this answer
          </Button>
          <Button onClick={onBack}>Back to the {item.direction === "request" ? "request" : "answer"}</Button>
        </>
      ) : (
        <>
          {isChanged && (
            <>
              <Button variant="primary" disabled={busy || problem !== null} onClick={onSend}>
                Send changed
              </Button>
              <Button onClick={onReset}>Undo changes</Button>
            </>
          )}
          <Button variant={isChanged ? "default" : "primary"} disabled={busy} onClick={onAllow}>
            {isChanged ? "Allow as it was" : "Allow"} <KeyHint keys={keysOf("paused.allow")} />
          </Button>
          <Button disabled={busy} onClick={onRespond}>
            Respond <KeyHint keys={keysOf("paused.respond")} />
          </Button>
          <Button variant="danger" disabled={busy} onClick={onReject}>
            Reject <KeyHint keys={keysOf("paused.reject")} />
          </Button>
          <Menu
            trigger={
              <Button variant="ghost">
                All of this rule <ChevronDown size={13} />
              </Button>
            }
            items={() => [
              { kind: "item", label: "Allow all from this rule", onSelect: () => onAllowAll(false) },
              {
                kind: "item",
                label: "Allow all and switch the rule off",
                disabled: item.rule_id === "pause-all",
                onSelect: () => onAllowAll(true),
              },
            ]}
          />
        </>
      )}
      <span className={styles["grow"]} />
      {problem !== null && <span className={styles["problem"]}>{problem}</span>}
      {isHeld && item.deadline !== null ? (
        <span className={styles["quiet"]} title="Its timer is held while you edit, at most an hour in all">
          Held while you edit
        </span>
      ) : (
        <Countdown deadline={item.deadline} since={item.paused_at} />
      )}
    </div>
  );
}
