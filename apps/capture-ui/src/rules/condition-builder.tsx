import type { Condition } from "@headworks/capture-contract";
import { readJson } from "@headworks/json";
import { Plus, Trash2 } from "lucide-react";
import { useId, useState } from "react";
import { Button, IconButton } from "../ui/button.tsx";
import { Field, Select, TextArea, TextInput } from "../ui/field.tsx";
import { Segmented } from "../ui/segmented.tsx";
import styles from "./condition-builder.module.css";
import {
  type Comparison,
  COMPARISON_LABELS,
  type ConditionDraft,
  conditionOf,
  draftOfCondition,
  EVERYTHING,
  type GroupDraft,
  newGroup,
  newTest,
  replaceDraft,
  SUBJECTS,
  type TestDraft,
  type Vocabulary,
  withSubject,
} from "./condition-draft.ts";
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
  const update = (condition: Condition | null): void => {
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
      {writing === "lines" && <ConditionLines initial={current} onChange={update} isSided={phase === "both"} />}
      {writing === "query" && <QueryText initial={current} onChange={update} phase={phase} />}
      {writing === "json" && <JsonText initial={current} onChange={update} />}
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

/** Vocabulary and options shared by all lines. */
interface BuilderOptions {
  /** Lets conditions choose the message. */
  readonly isSided: boolean;
  readonly vocabulary: Vocabulary;
}

/** A condition as lines and nested groups. */
export function ConditionLines({
  initial,
  onChange,
  isSided,
  vocabulary = EVERYTHING,
}: {
  readonly initial: Condition;
  /** Receives null while a line is incomplete. */
  readonly onChange: (condition: Condition | null) => void;
  readonly isSided: boolean;
  readonly vocabulary?: Vocabulary | undefined;
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
      options={{ isSided, vocabulary }}
      problems={built.ok || !touched ? undefined : built.problems}
      onChange={change}
      replace={(key, next) => change(replaceDraft(draft, key, next))}
    />
  );
}

interface GroupProps {
  readonly group: GroupDraft;
  readonly options: BuilderOptions;
  readonly problems: ReadonlyMap<number, string> | undefined;
  readonly onChange: (group: GroupDraft) => void;
  readonly replace: (key: number, next: ConditionDraft | null) => void;
  readonly onRemove?: (() => void) | undefined;
}

function Group({ group, options, problems, onChange, replace, onRemove }: GroupProps) {
  const isInner = onRemove !== undefined;
  return (
    <div className={styles["group"]} data-inner={isInner || undefined} role="group" aria-label="Conditions">
      {(group.items.length > 1 || isInner) && (
        <div className={styles["groupHead"]}>
          {isInner && options.vocabulary.hasNot && (
            <NotButton not={group.not} onChange={(not) => onChange({ ...group, not })} of="this group" />
          )}
          <Segmented
            label="Conditions required"
            value={group.op}
            options={[
              { value: "and", label: "Match all" },
              { value: "or", label: "Match any" },
            ]}
            onChange={(op) => onChange({ ...group, op })}
          />
          {isInner && <IconButton label="Remove group" icon={<Trash2 size={14} />} onClick={onRemove} />}
        </div>
      )}
      {group.items.length === 0 && <p className={styles["none"]}>Matches every request.</p>}
      {group.items.map((item) =>
        item.kind === "group" ? (
          <Group
            key={item.key}
            group={item}
            options={options}
            problems={problems}
            onChange={(next) => replace(item.key, next)}
            replace={replace}
            onRemove={() => replace(item.key, null)}
          />
        ) : (
          <Line
            key={item.key}
            test={item}
            options={options}
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
          onClick={() =>
            onChange({ ...group, items: [...group.items, newTest([...options.vocabulary.comparisons.keys()][0])] })
          }
        >
          Add condition
        </Button>
        <Button
          variant="ghost"
          icon={<Plus size={14} />}
          onClick={() =>
            onChange({
              ...group,
              items: [...group.items, newGroup([newTest([...options.vocabulary.comparisons.keys()][0])], "or")],
            })
          }
        >
          Add group
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
    <Button pressed={not} aria-label={`not: negate ${of}`} title="Negate" onClick={() => onChange(!not)}>
      not
    </Button>
  );
}

const SIDES = [
  { value: "any", label: "current message" },
  { value: "request", label: "request" },
  { value: "response", label: "response" },
] as const;

function Line({
  test,
  options: { isSided, vocabulary },
  problem,
  onChange,
  onRemove,
}: {
  readonly test: TestDraft;
  readonly options: BuilderOptions;
  readonly problem: string | undefined;
  readonly onChange: (test: TestDraft) => void;
  readonly onRemove: () => void;
}) {
  const spec = SUBJECTS[test.subject];
  const comparisons = vocabulary.comparisons.get(test.subject) ?? spec.comparisons;
  const id = useId();
  const described = problem === undefined ? {} : { "aria-invalid": true, "aria-describedby": id };
  return (
    <div className={styles["line"]} role="group" aria-label={`${spec.label} condition`}>
      {vocabulary.hasNot && (
        <NotButton not={test.not} onChange={(not) => onChange({ ...test, not })} of="this condition" />
      )}
      <span className={styles["subject"]}>
        <Select
          aria-label="Field"
          value={test.subject}
          options={[...vocabulary.comparisons.keys()].map((value) => ({ value, label: SUBJECTS[value].label }))}
          onChange={(subject) => onChange(withSubject(test, subject, vocabulary))}
        />
      </span>
      {spec.sided === true && isSided && (
        <span className={styles["side"]}>
          <Select
            aria-label="Message"
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
      {comparisons.length > 1 ? (
        <span className={styles["comparison"]}>
          <Select<Comparison>
            aria-label="Comparison"
            value={test.comparison}
            options={comparisons.map((value) => ({ value, label: COMPARISON_LABELS[value] }))}
            onChange={(comparison) => onChange({ ...test, comparison })}
          />
        </span>
      ) : (
        <span className={styles["verb"]}>{COMPARISON_LABELS[test.comparison]}</span>
      )}
      {test.comparison !== "there" && <Value test={test} described={described} onChange={onChange} />}
      <IconButton label="Remove condition" icon={<Trash2 size={14} />} onClick={onRemove} />
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
