import { Switch as BaseSwitch } from "@base-ui/react/switch";
import { Select as BaseSelect } from "@base-ui/react/select";
import { Check, ChevronDown } from "lucide-react";
import { createContext, use, useId } from "react";
import type { ComponentPropsWithRef, ReactNode } from "react";
import { classNames } from "./class-names.ts";
import styles from "./field.module.css";
import menuStyles from "./menu.module.css";

interface FieldIds {
  readonly control: string;
  readonly description: string | undefined;
  readonly invalid: boolean;
}

const FieldContext = createContext<FieldIds | null>(null);

/** A labelled control (TextInput, TextArea, Select) with a hint or an error, associated for screen readers. */
export function Field({
  label,
  hint,
  error,
  children,
  className,
}: {
  readonly label: ReactNode;
  readonly hint?: ReactNode | undefined;
  readonly error?: ReactNode | undefined;
  readonly children: ReactNode;
  readonly className?: string | undefined;
}) {
  const id = useId();
  const invalid = error !== undefined && error !== null && error !== "";
  const described = invalid || hint !== undefined;
  return (
    <FieldContext value={{ control: id, description: described ? `${id}-text` : undefined, invalid }}>
      <div className={classNames(styles["field"], className)}>
        <label className={styles["label"]} htmlFor={id}>
          {label}
        </label>
        {children}
        {invalid ? (
          <p id={`${id}-text`} className={styles["error"]} role="alert">
            {error}
          </p>
        ) : (
          hint !== undefined && (
            <p id={`${id}-text`} className={styles["hint"]}>
              {hint}
            </p>
          )
        )}
      </div>
    </FieldContext>
  );
}

function useFieldProps() {
  const field = use(FieldContext);
  return field === null
    ? {}
    : { id: field.control, "aria-describedby": field.description, "aria-invalid": field.invalid || undefined };
}

/** A single-line input. `mono` is for hosts, patterns, queries and code. */
export function TextInput({ mono, className, ...rest }: ComponentPropsWithRef<"input"> & { readonly mono?: boolean }) {
  return (
    <input
      type="text"
      spellCheck={false}
      autoComplete="off"
      {...useFieldProps()}
      {...rest}
      className={classNames(styles["input"], mono === true && styles["mono"], className)}
    />
  );
}

export function TextArea({
  mono,
  className,
  ...rest
}: ComponentPropsWithRef<"textarea"> & { readonly mono?: boolean }) {
  return (
    <textarea
      {...useFieldProps()}
      {...rest}
      className={classNames(styles["input"], mono === true && styles["mono"], className)}
    />
  );
}

/** A switch that takes effect immediately. Needs `label` or `aria-label`. */
export function Switch({
  checked,
  onChange,
  label,
  disabled,
  "aria-label": ariaLabel,
}: {
  readonly checked: boolean;
  readonly onChange: (checked: boolean) => void;
  readonly label?: ReactNode | undefined;
  readonly disabled?: boolean | undefined;
  readonly "aria-label"?: string | undefined;
}) {
  const field = useFieldProps();
  const control = (
    <BaseSwitch.Root
      {...(label === undefined ? field : {})}
      checked={checked}
      onCheckedChange={onChange}
      disabled={disabled ?? false}
      aria-label={ariaLabel}
      className={styles["switch"]}
    >
      <BaseSwitch.Thumb className={styles["thumb"]} />
    </BaseSwitch.Root>
  );
  if (label === undefined) return control;
  return (
    <label className={styles["switchRow"]}>
      {control}
      <span>{label}</span>
    </label>
  );
}

export interface SelectOption<V extends string> {
  readonly value: V;
  readonly label: string;
}

/** A drop-down for lists too long for a Segmented. */
export function Select<V extends string>({
  value,
  options,
  onChange,
  disabled,
  "aria-label": ariaLabel,
}: {
  readonly value: V;
  readonly options: readonly SelectOption<V>[];
  readonly onChange: (value: V) => void;
  readonly disabled?: boolean | undefined;
  readonly "aria-label"?: string | undefined;
}) {
  return (
    <BaseSelect.Root
      items={options}
      value={value}
      disabled={disabled ?? false}
      onValueChange={(next) => {
        if (next !== null) onChange(next);
      }}
    >
      <BaseSelect.Trigger {...useFieldProps()} aria-label={ariaLabel} className={styles["select"]}>
        <span className={styles["selectText"]}>
          <BaseSelect.Value />
        </span>
        <BaseSelect.Icon>
          <ChevronDown size={14} />
        </BaseSelect.Icon>
      </BaseSelect.Trigger>
      <BaseSelect.Portal>
        <BaseSelect.Positioner className={menuStyles["positioner"]} sideOffset={4} alignItemWithTrigger={false}>
          <BaseSelect.Popup className={menuStyles["popup"]}>
            {options.map((option) => (
              <BaseSelect.Item key={option.value} value={option.value} className={menuStyles["item"]}>
                <span className={menuStyles["mark"]}>
                  <BaseSelect.ItemIndicator>
                    <Check size={14} />
                  </BaseSelect.ItemIndicator>
                </span>
                <BaseSelect.ItemText className={menuStyles["text"]}>{option.label}</BaseSelect.ItemText>
              </BaseSelect.Item>
            ))}
          </BaseSelect.Popup>
        </BaseSelect.Positioner>
      </BaseSelect.Portal>
    </BaseSelect.Root>
  );
}
