import { Field, TextInput } from "../ui/field.tsx";
import { Segmented } from "../ui/segmented.tsx";
import styles from "./rule-parts.module.css";

interface TextFieldProps {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly hint?: string | undefined;
  readonly error?: string | undefined;
}

export function NameField({ value, onChange, hint, error }: TextFieldProps) {
  return (
    <Field label="Name" hint={hint} error={error}>
      <TextInput maxLength={255} value={value} onChange={(event) => onChange(event.target.value)} />
    </Field>
  );
}

/** Priority of a rule, as typed. */
export function OrderField({ value, onChange, hint, error }: TextFieldProps) {
  return (
    <Field label="Priority" hint={hint} error={error}>
      <TextInput inputMode="numeric" maxLength={8} value={value} onChange={(event) => onChange(event.target.value)} />
    </Field>
  );
}

type Direction = "request" | "response" | "both";

/** The messages a rule applies to. `words` labels requests, responses and both. */
export function DirectionField({
  label,
  about,
  words,
  value,
  onChange,
}: {
  readonly label: string;
  /** Full question for screen readers. */
  readonly about: string;
  readonly words: Readonly<Record<Direction, string>>;
  readonly value: Direction;
  readonly onChange: (direction: Direction) => void;
}) {
  return (
    <div className={styles["option"]}>
      <span className={styles["optionLabel"]}>{label}</span>
      <Segmented
        label={about}
        value={value}
        options={[
          { value: "request", label: words.request },
          { value: "response", label: words.response },
          { value: "both", label: words.both },
        ]}
        onChange={onChange}
      />
    </div>
  );
}
