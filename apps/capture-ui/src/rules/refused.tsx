import { errorText } from "../api.ts";
import styles from "./rule-parts.module.css";

/** Why something was refused or failed, told to screen readers at once; nothing where nothing went wrong. */
export function Refused({ children }: { readonly children: string | null | undefined }) {
  if (children === null || children === undefined) return null;
  return (
    <p className={styles["problem"]} role="alert">
      {children}
    </p>
  );
}

/** Why a call failed; nothing while it did not. */
export function Failed({ error }: { readonly error: unknown }) {
  return error === null ? null : <Refused>{errorText(error)}</Refused>;
}
