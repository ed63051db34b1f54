import type { Condition } from "@headworks/capture-contract";
import { Plus, Trash2 } from "lucide-react";
import { useId, useState } from "react";
import { Button, IconButton } from "../ui/button.tsx";
import { Field, Select, TextArea, TextInput } from "../ui/field.tsx";
import { Segmented } from "../ui/segmented.tsx";
import styles from "./condition-builder.module.css";
import {
  COMPARISON_LABELS,
  conditionOf,
  draftOfCondition,
  newGroup,
  newTest,
  replaceDraft,
  SUBJECTS,
  withSubject,
} from "./condition-draft.ts";
import type { Comparison, ConditionDraft, GroupDraft, Subject, TestDraft } from "./condition-draft.ts";
import { conditionOfQuery, queryOfCondition } from "./condition-query.ts";

type Writing = "lines" | "query" | "json";

const WRITINGS: readonly { readonly value: Writing; readonly label: string }[] = [
  { value: "lines", label: "Lines" },
  { value: "query", label: "Query" },
  { value: "json", label: "JSON" },
];

/**
 * Edits a condition: as lines, as text of the query language, or as JSON. `onChange` is told null while what is written
 * is no condition yet.
 */
export function ConditionBuilder({
  initial,
  onChange,
  phase,
  error,
}: {
  /** The condition to begin with; later changes are the builder's own. */
  readonly initial: Condition;
  readonly onChange: (condition: Condition | null) => void;
  /** What the rule looks at; `both` offers a choice for conditions about a message. */
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
    // What was half written is given up: every way of writing starts from the last whole condition.
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
        <Segmented label="How the condition is written" value={writing} options={WRITINGS} onChange={choose} />
      </div>
      {writing === "lines" && <Lines initial={current} onChange={tell} isSided={phase === "both"} />}
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

function Lines({
  initial,
  onChange,
  isSided,
}: {
  readonly initial: Condition;
  readonly onChange: (condition: Condition | null) => void;
  readonly isSided: boolean;
}) {
  const [draft, setDraft] = useState<GroupDraft>(() => draftOfCondition(initial));
  const [touched, setTouched] = useState(false);
  const built = conditionOf(draft);
  const change = (next: GroupDraft): void => {
    setDraft(next);
    setTouched(true);
    const result = conditionOf(next);
    onChange(result.ok ? result.condition : null);
  };
  return (
    <Group
      group={draft}
      isSided={isSided}
      problems={built.ok || !touched ? undefined : built.problems}
      onChange={change}
      replace={(key, next) => change(replaceDraft(draft, key, next))}
    />
  );
}

interface GroupProps {
  readonly group: GroupDraft;
  readonly isSided: boolean;
  readonly problems: ReadonlyMap<number, string> | undefined;
  readonly onChange: (group: GroupDraft) => void;
  readonly replace: (key: number, next: ConditionDraft | null) => void;
  readonly onRemove?: (() => void) | undefined;
}

function Group({ group, isSided, problems, onChange, replace, onRemove }: GroupProps) {
  const isInner = onRemove !== undefined;
  return (
    <div className={styles["group"]} data-inner={isInner || undefined} role="group" aria-label="Conditions">
      {(group.items.length > 1 || isInner) && (
        <div className={styles["groupHead"]}>
          {isInner && (
            <NotButton not={group.not} onChange={(not) => onChange({ ...group, not })} of="these conditions" />
          )}
          <Segmented
            label="How many must hold"
            value={group.op}
            options={[
              { value: "and", label: "All of these" },
              { value: "or", label: "Any of these" },
            ]}
            onChange={(op) => onChange({ ...group, op })}
          />
          {isInner && <IconButton label="Remove the group" icon={<Trash2 size={14} />} onClick={onRemove} />}
        </div>
      )}
      {group.items.length === 0 && <p className={styles["none"]}>Holds for everything.</p>}
      {group.items.map((item) =>
        item.kind === "group" ? (
          <Group
            key={item.key}
            group={item}
            isSided={isSided}
            problems={problems}
            onChange={(next) => replace(item.key, next)}
            replace={replace}
            onRemove={() => replace(item.key, null)}
          />
        ) : (
          <Line
            key={item.key}
            test={item}
            isSided={isSided}
            problem={problems?.get(item.key)}
            onChange={(next) => replace(item.key, next)}
            onRemove={() => replace(item.key, null)}
          />
        ),
      )}
      <div className={styles["add"]}>
        <Button
          variant="ghost"
          icon={<Plus size={14} />}
          onClick={() => onChange({ ...group, items: [...group.items, newTest()] })}
        >
          Add a condition
        </Button>
        <Button
          variant="ghost"
          icon={<Plus size={14} />}
          onClick={() => onChange({ ...group, items: [...group.items, newGroup([newTest()], "or")] })}
        >
          Add a group
        </Button>
      </div>
    </div>
  );
}

function NotButton({
  not,
  onChange,
  of,
}: {
  readonly not: boolean;
  readonly onChange: (not: boolean) => void;
  readonly of: string;
}) {
  return (
    <Button pressed={not} aria-label={`not: the opposite of ${of}`} title="The opposite" onClick={() => onChange(!not)}>
      not
    </Button>
  );
}

const SUBJECT_OPTIONS = (Object.keys(SUBJECTS) as Subject[]).map((value) => ({
  value,
  label: SUBJECTS[value].label,
}));

const SIDES = [
  { value: "any", label: "passing message" },
  { value: "request", label: "request" },
  { value: "response", label: "answer" },
] as const;

function Line({
  test,
  isSided,
  problem,
  onChange,
  onRemove,
}: {
  readonly test: TestDraft;
  readonly isSided: boolean;
  readonly problem: string | undefined;
  readonly onChange: (test: TestDraft) => void;
  readonly onRemove: () => void;
}) {
  const spec = SUBJECTS[test.subject];
  const id = useId();
  const described = problem === undefined ? {} : { "aria-invalid": true, "aria-describedby": id };
  return (
    <div className={styles["line"]} role="group" aria-label={`${spec.label} condition`}>
      <NotButton not={test.not} onChange={(not) => onChange({ ...test, not })} of="this condition" />
      <span className={styles["subject"]}>
        <Select
          aria-label="What is looked at"
          value={test.subject}
          options={SUBJECT_OPTIONS}
          onChange={(subject) => onChange(withSubject(test, subject))}
        />
      </span>
      {spec.sided === true && isSided && (
        <span className={styles["side"]}>
          <Select
            aria-label="Of which message"
            value={test.side ?? "any"}
            options={SIDES}
            onChange={(side) => onChange({ ...test, side: side === "any" ? null : side })}
          />
        </span>
      )}
      {spec.name !== undefined && (
        <TextInput
          mono
          className={styles["name"]}
          aria-label={spec.name}
          placeholder={spec.name}
          maxLength={1000}
          value={test.name}
          {...described}
          onChange={(event) => onChange({ ...test, name: event.target.value })}
        />
      )}
      {spec.comparisons.length > 1 ? (
        <span className={styles["comparison"]}>
          <Select<Comparison>
            aria-label="Comparison"
            value={test.comparison}
            options={spec.comparisons.map((value) => ({ value, label: COMPARISON_LABELS[value] }))}
            onChange={(comparison) => onChange({ ...test, comparison })}
          />
        </span>
      ) : (
        <span className={styles["verb"]}>{COMPARISON_LABELS[test.comparison]}</span>
      )}
      {test.comparison !== "there" && <Value test={test} described={described} onChange={onChange} />}
      <IconButton label="Remove the condition" icon={<Trash2 size={14} />} onClick={onRemove} />
      {problem !== undefined && (
        <p id={id} className={styles["problem"]}>
          {problem}
        </p>
      )}
    </div>
  );
}

function Value({
  test,
  described,
  onChange,
}: {
  readonly test: TestDraft;
  readonly described: object;
  readonly onChange: (test: TestDraft) => void;
}) {
  const spec = SUBJECTS[test.subject];
  if (spec.choices !== undefined && (test.value === "" || spec.choices.includes(test.value))) {
    return (
      <span className={styles["value"]}>
        <Select
          aria-label="Value"
          value={test.value}
          options={spec.choices.map((value) => ({ value, label: value }))}
          onChange={(value) => onChange({ ...test, value })}
        />
      </span>
    );
  }
  return (
    <TextInput
      mono
      className={styles["value"]}
      aria-label="Value"
      placeholder={test.comparison === "matches" ? "regular expression, or * for anything" : spec.example}
      value={test.value}
      {...described}
      onChange={(event) => onChange({ ...test, value: event.target.value })}
    />
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
  const known = queryOfCondition(initial, "request");
  const [text, setText] = useState(known ?? "");
  const [problem, setProblem] = useState<string>();
  const change = (next: string): void => {
    setText(next);
    const result = conditionOfQuery(next);
    setProblem(result.ok ? undefined : result.message);
    onChange(result.ok ? result.condition : null);
  };
  return (
    <Field
      label="Condition in the query language"
      hint={
        known === null
          ? "The query language has no words for the present condition; what is written here replaces it."
          : phase === "both"
            ? "The same words as in the traffic list; body: and header: look at the message that is passing by."
            : "The same words as in the traffic list."
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
      const value: unknown = JSON.parse(next);
      const isObject = typeof value === "object" && value !== null && "type" in value;
      setProblem(isObject ? undefined : 'An object with a type, such as { "type": "all" }');
      // The service says what else is wrong with it.
      onChange(isObject ? (value as Condition) : null);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : "This is not JSON");
      onChange(null);
    }
  };
  return (
    <Field label="Condition as JSON" error={problem}>
      <TextArea mono rows={8} spellCheck={false} value={text} onChange={(event) => change(event.target.value)} />
    </Field>
  );
}
