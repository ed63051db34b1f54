import { readJson } from "@headworks/json";
import type { Condition } from "@headworks/capture-contract";
import { useState } from "react";
import { Field, TextArea, TextInput } from "../ui/field.tsx";
import { Segmented } from "../ui/segmented.tsx";
import styles from "./condition-builder.module.css";
import { ConditionLines } from "./condition-lines.tsx";
import { conditionOfQuery, queryOfCondition } from "./condition-query.ts";

type Writing = "lines" | "query" | "json";

const WRITINGS: readonly { readonly value: Writing; readonly label: string }[] = [
  { value: "lines", label: "Form" },
  { value: "query", label: "Query" },
  { value: "json", label: "JSON" },
];

/**
 * Edits a condition as a form, as query language, or as JSON. `onChange` receives null while the input is incomplete.
 */
export function ConditionBuilder({
  initial,
  onChange,
  phase,
  error,
}: {
  /** Initial condition; later changes stay in the builder. */
  readonly initial: Condition;
  readonly onChange: (condition: Condition | null) => void;
  /** The message the rule matches; `both` lets conditions choose the message. */
  readonly phase: "request" | "both";
  readonly error?: string | undefined;
}) {
  const [writing, setWriting] = useState<Writing>("lines");
  const [current, setCurrent] = useState<Condition>(initial);
  const tell = (condition: Condition | null): void => {
    if (condition !== null) setCurrent(condition);
    onChange(condition);
  };
  const choose = (next: Writing): void => {
    // Incomplete input is discarded: each format starts from the last complete condition.
    onChange(current);
    setWriting(next);
  };
  return (
    <fieldset className={styles["builder"]}>
      <legend className="visually-hidden">When</legend>
      <div className={styles["writing"]}>
        <span className={styles["legend"]} aria-hidden>
          When
        </span>
        <Segmented label="Condition format" value={writing} options={WRITINGS} onChange={choose} />
      </div>
      {writing === "lines" && <ConditionLines initial={current} onChange={tell} isSided={phase === "both"} />}
      {writing === "query" && <QueryText initial={current} onChange={tell} phase={phase} />}
      {writing === "json" && <JsonText initial={current} onChange={tell} />}
      {error !== undefined && (
        <p className={styles["error"]} role="alert">
          {error}
        </p>
      )}
    </fieldset>
  );
}

function QueryText({
  initial,
  onChange,
  phase,
}: {
  readonly initial: Condition;
  readonly onChange: (condition: Condition | null) => void;
  readonly phase: "request" | "both";
}) {
  const known = queryOfCondition(initial, phase);
  const [text, setText] = useState(known ?? "");
  const [problem, setProblem] = useState<string>();
  const change = (next: string): void => {
    setText(next);
    const result = conditionOfQuery(next, phase);
    setProblem(result.ok ? undefined : result.message);
    onChange(result.ok ? result.condition : null);
  };
  return (
    <Field
      label="Condition in the query language"
      hint={
        known === null
          ? "The query language cannot express the current condition; text entered here replaces it."
          : phase === "both"
            ? "Same syntax as the traffic filter; body: and header[name]: match either message, req.body: and resp.body: only one."
            : "Same syntax as the traffic filter."
      }
      error={problem}
    >
      <TextInput
        mono
        maxLength={4096}
        placeholder="host:api.example.com method:(PUT|POST) -path:/health"
        value={text}
        onChange={(event) => change(event.target.value)}
      />
    </Field>
  );
}

function JsonText({
  initial,
  onChange,
}: {
  readonly initial: Condition;
  readonly onChange: (condition: Condition | null) => void;
}) {
  const [text, setText] = useState(() => JSON.stringify(initial, null, 2));
  const [problem, setProblem] = useState<string>();
  const change = (next: string): void => {
    setText(next);
    try {
      const value: unknown = readJson(next);
      const isObject = typeof value === "object" && value !== null && "type" in value;
      setProblem(isObject ? undefined : 'An object with a type, such as { "type": "all" }');
      // The service validates the rest.
      onChange(isObject ? (value as Condition) : null);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : "Not valid JSON");
      onChange(null);
    }
  };
  return (
    <Field label="Condition as JSON" error={problem}>
      <TextArea mono rows={8} spellCheck={false} value={text} onChange={(event) => change(event.target.value)} />
    </Field>
  );
}
