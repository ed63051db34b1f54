import { CircleCheck, CircleX } from "lucide-react";
import styles from "./settings.module.css";

export interface TestStep {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
}

/** The steps of a test in order, with their results. */
export function TestSteps({ steps }: { readonly steps: readonly TestStep[] }) {
  return (
    <ol className={styles["steps"]}>
      {steps.map((step) => (
        <li key={step.name}>
          {step.ok ? (
            <CircleCheck size={15} className={styles["good"]} aria-label="Passed" />
          ) : (
            <CircleX size={15} className={styles["bad"]} aria-label="Failed" />
          )}
          <span>
            {step.name} <span className={styles["quiet"]}>{step.detail}</span>
          </span>
        </li>
      ))}
    </ol>
  );
}
