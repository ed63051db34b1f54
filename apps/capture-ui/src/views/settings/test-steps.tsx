import { useMutation } from "@tanstack/react-query";
import { CircleCheck, CircleX } from "lucide-react";
import { api, errorText } from "../../api.ts";
import { Button } from "../../ui/button.tsx";
import { Spinner } from "../../ui/states.tsx";
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

/** Sends one HTTPS request through the proxy and shows the result of each step. */
export function InterceptionTest({
  label = "Test decryption",
  hint,
}: {
  readonly label?: string;
  readonly hint?: string;
}) {
  const test = useMutation({ mutationFn: () => api.cert.testInterception({}) });
  return (
    <div className={styles["test"]}>
      <div className={styles["testHead"]}>
        <Button
          disabled={test.isPending}
          icon={test.isPending ? <Spinner label="Testing" /> : undefined}
          onClick={() => test.mutate()}
        >
          {label}
        </Button>
        {hint !== undefined && test.data === undefined && <span className={styles["quiet"]}>{hint}</span>}
        {test.data !== undefined && (
          <span role="status" className={test.data.ok ? styles["good"] : styles["bad"]}>
            {test.data.ok ? "Decryption works on Weir's side" : "Decryption does not work"}
          </span>
        )}
      </div>
      {test.error !== null && (
        <p className={styles["error"]} role="alert">
          {errorText(test.error)}
        </p>
      )}
      {test.data !== undefined && <TestSteps steps={test.data.steps} />}
    </div>
  );
}
