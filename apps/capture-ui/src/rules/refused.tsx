import { errorText } from "../api.ts";
import styles from "./rule-parts.module.css";

/** Reason of a refusal or failure, announced to screen readers at once. */
export function Refused({ children }: { readonly children: string | null | undefined }) {
  if (children === null || children === undefined) return null;
  return (
    <p className={styles["problem"]} role="alert">
      {children}
    </p>
  );
}

/** Error of a failed call. */
export function Failed({ error }: { readonly error: unknown }) {
  return error === null ? null : <Refused>{errorText(error)}</Refused>;
}
