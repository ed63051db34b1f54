import type { RewriteAction } from "@headworks/capture-contract";
import { Plus } from "lucide-react";
import { Button } from "../../ui/button.tsx";
import { OrderButtons } from "../../rules/rule-fields.tsx";
import shared from "../../rules/rule-parts.module.css";
import { Field, Select, Switch, TextArea, TextInput } from "../../ui/field.tsx";
import { Menu } from "../../ui/menu.tsx";
import { ACTIONS, newAction, withType, type ActionDraft, type ActionField } from "./rewrite-draft.ts";
import styles from "./rewrites.module.css";

const TYPES = (Object.keys(ACTIONS) as RewriteAction["type"][]).map((value) => ({
  value,
  label: ACTIONS[value].label,
}));

const ABOUT = { request: "requests only", response: "responses only", both: null } as const;

export function ActionsEditor({
  drafts,
  problems,
  onChange,
}: {
  readonly drafts: readonly ActionDraft[];
  readonly problems: ReadonlyMap<number, string>;
  readonly onChange: (drafts: readonly ActionDraft[]) => void;
}) {
  return (
    <fieldset className={styles["actions"]}>
      <legend>Then</legend>
      {drafts.map((draft, index) => (
        <div key={draft.key} className={styles["action"]} role="group" aria-label={`Step ${index + 1}`}>
          <div className={styles["actionHead"]}>
            <span className={styles["actionType"]}>
              <Select
                aria-label={`Action of step ${index + 1}`}
                value={draft.type}
                options={TYPES}
                onChange={(type) => onChange(drafts.with(index, withType(draft, type)))}
              />
            </span>
            <span className={shared["quiet"]}>{ABOUT[ACTIONS[draft.type].about]}</span>
            <span className={shared["grow"]} />
            <OrderButtons items={drafts} index={index} remove="Remove step" onChange={onChange} />
          </div>
          <div className={styles["actionFields"]}>
            {ACTIONS[draft.type].fields.map((field) => (
              <ActionInput
                key={field.name}
                field={field}
                value={draft.values[field.name] ?? ""}
                onChange={(value) =>
                  onChange(drafts.with(index, { ...draft, values: { ...draft.values, [field.name]: value } }))
                }
              />
            ))}
          </div>
          {problems.get(draft.key) !== undefined && <p className={shared["problem"]}>{problems.get(draft.key)}</p>}
        </div>
      ))}
      <div>
        <Menu
          trigger={
            <Button variant="ghost" icon={<Plus size={14} />}>
              Add step
            </Button>
          }
          items={() =>
            TYPES.map(({ value, label }) => ({
              kind: "item" as const,
              label,
              onSelect: () => onChange([...drafts, newAction(value)]),
            }))
          }
        />
      </div>
    </fieldset>
  );
}

function ActionInput({
  field,
  value,
  onChange,
}: {
  readonly field: ActionField;
  readonly value: string;
  readonly onChange: (value: string) => void;
}) {
  switch (field.kind) {
    case "switch":
      return (
        <span className={styles["wide"]}>
          <Switch
            label={field.label}
            checked={value === "true"}
            onChange={(checked) => onChange(checked ? "true" : "")}
          />
        </span>
      );
    case "flags":
      return (
        <div className={styles["flags"]} role="group" aria-label={field.label}>
          {FLAGS.map(({ letter, label }) => (
            <Button
              key={letter}
              pressed={value.includes(letter)}
              title={label}
              aria-label={label}
              onClick={() => onChange(value.includes(letter) ? value.replaceAll(letter, "") : value + letter)}
            >
              {letter}
            </Button>
          ))}
        </div>
      );
    case "lines":
    case "json":
      return (
        <Field label={field.label} className={styles["wide"]}>
          <TextArea
            mono
            rows={field.kind === "json" ? 3 : 5}
            spellCheck={false}
            placeholder={field.example}
            value={value}
            onChange={(event) => onChange(event.target.value)}
          />
        </Field>
      );
    case "text":
    case "number":
      return (
        <Field label={field.label}>
          <TextInput
            mono
            placeholder={field.example}
            value={value}
            onChange={(event) => onChange(event.target.value)}
          />
        </Field>
      );
  }
}

const FLAGS = [
  { letter: "i", label: "Ignore case" },
  { letter: "m", label: "Multiline: ^ and $ match at each line" },
  { letter: "s", label: "Dot matches newlines" },
] as const;
