import type { Condition } from "@headworks/capture-contract";
import { Plus, Trash2 } from "lucide-react";
import { useId, useState } from "react";
import { Button, IconButton } from "../ui/button.tsx";
import { Select, TextInput } from "../ui/field.tsx";
import { Segmented } from "../ui/segmented.tsx";
import styles from "./condition-builder.module.css";
import {
  COMPARISON_LABELS,
  conditionOf,
  draftOfCondition,
  EVERYTHING,
  newGroup,
  newTest,
  replaceDraft,
  SUBJECTS,
  withSubject,
} from "./condition-draft.ts";
import type { Comparison, ConditionDraft, GroupDraft, TestDraft, Vocabulary } from "./condition-draft.ts";

/** Vocabulary and options shared by all lines. */
interface Words {
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
      words={{ isSided, vocabulary }}
      problems={built.ok || !touched ? undefined : built.problems}
      onChange={change}
      replace={(key, next) => change(replaceDraft(draft, key, next))}
    />
  );
}

interface GroupProps {
  readonly group: GroupDraft;
  readonly words: Words;
  readonly problems: ReadonlyMap<number, string> | undefined;
  readonly onChange: (group: GroupDraft) => void;
  readonly replace: (key: number, next: ConditionDraft | null) => void;
  readonly onRemove?: (() => void) | undefined;
}

function Group({ group, words, problems, onChange, replace, onRemove }: GroupProps) {
  const isInner = onRemove !== undefined;
  return (
    <div className={styles["group"]} data-inner={isInner || undefined} role="group" aria-label="Conditions">
      {(group.items.length > 1 || isInner) && (
        <div className={styles["groupHead"]}>
          {isInner && words.vocabulary.hasNot && (
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
            words={words}
            problems={problems}
            onChange={(next) => replace(item.key, next)}
            replace={replace}
            onRemove={() => replace(item.key, null)}
          />
        ) : (
          <Line
            key={item.key}
            test={item}
            words={words}
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
            onChange({ ...group, items: [...group.items, newTest([...words.vocabulary.comparisons.keys()][0])] })
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
              items: [...group.items, newGroup([newTest([...words.vocabulary.comparisons.keys()][0])], "or")],
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
  words: { isSided, vocabulary },
  problem,
  onChange,
  onRemove,
}: {
  readonly test: TestDraft;
  readonly words: Words;
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
