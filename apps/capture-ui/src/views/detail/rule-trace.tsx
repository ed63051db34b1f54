import type { TrafficEntry } from "@headworks/capture-contract";
import { Link } from "../../shell/link.tsx";
import { Tag } from "../../ui/tag.tsx";
import styles from "./detail.module.css";

type Step = TrafficEntry["trace"][number];

const SCREENS: Readonly<Partial<Record<Step["kind"], (id: string) => string>>> = {
  block: () => "/blocklist",
  breakpoint: () => "/breakpoints?part=rules",
  mock: (id) => `/mocks?id=${encodeURIComponent(id)}`,
  rewrite: (id) => `/rewrites?id=${encodeURIComponent(id)}`,
  throttle: () => "/throttle",
};

/** Every rule that touched the exchange, in order, and what it did. */
export function RuleTrace({ trace }: { readonly trace: readonly Step[] }) {
  if (trace.length === 0) return null;
  return (
    <section className={styles["section"]}>
      <h2>Rules that touched it</h2>
      <ol className={styles["trace"]} aria-label="Rules that touched it">
        {trace.map((step, index) => (
          <li key={`${index}`}>
            <span className={styles["traceHead"]}>
              <Tag tone={step.phase === "request" ? "neutral" : "accent"}>
                {step.phase === "request" ? "request" : "answer"}
              </Tag>
              <span className={styles["quiet"]}>{step.kind}</span>
              <RuleName step={step} />
            </span>
            {step.changes.map((change, position) => (
              <span key={`${position}`} className={styles["traceChange"]}>
                {change}
              </span>
            ))}
          </li>
        ))}
      </ol>
    </section>
  );
}

function RuleName({ step }: { readonly step: Step }) {
  const screen = SCREENS[step.kind];
  return screen === undefined ? <b>{step.rule_name}</b> : <Link href={screen(step.rule_id)}>{step.rule_name}</Link>;
}
