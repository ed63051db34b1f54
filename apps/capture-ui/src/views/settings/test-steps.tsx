import { CircleCheck, CircleX } from "lucide-react";
import styles from "./settings.module.css";

/** One step of a test that the service made. */
export interface TestStep {
  readonly name: string;
  readonly ok: boolean;
  readonly detail: string;
}

/** The steps of a test, in the order in which they were made, with how each went. */
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
