import { useState } from "react";
import type { ReactNode } from "react";
import { setParams, useLocation } from "../../shell/router.ts";
import { Field, Switch, TextInput } from "../../ui/field.tsx";
import styles from "./replay.module.css";

/** Exclusions of a comparison, kept in the URL. */
export function DiffFields({ children }: { readonly children?: ReactNode }) {
  const { params } = useLocation();
  return (
    <form className={styles["fields"]} onSubmit={(event) => event.preventDefault()}>
      <AddressField name="paths" label="Ignore JSON paths" hint="$.user.id, $.items[*].at" />
      <AddressField name="headers" label="Ignore headers" hint="Default: Date, Age, request IDs and similar" />
      {children}
      <Switch
        label="Compare structure only"
        checked={params.get("shape") === "1"}
        onChange={(on) => setParams({ shape: on ? "1" : null }, { replace: true })}
      />
    </form>
  );
}

/** A text field that takes effect on blur or Enter. */
export function AddressField({
  name,
  label,
  hint,
}: {
  readonly name: string;
  readonly label: string;
  readonly hint: string;
}) {
  const { params } = useLocation();
  const [typed, setTyped] = useState(params.get(name) ?? "");
  const apply = (): void => setParams({ [name]: typed }, { replace: true });
  return (
    <Field label={label} hint={hint}>
      <TextInput
        mono
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
        onBlur={apply}
        onKeyDown={(event) => {
          if (event.key === "Enter") apply();
        }}
      />
    </Field>
  );
}
