import { Copy } from "lucide-react";
import { IconButton } from "../../ui/button.tsx";
import { copyText } from "../../ui/copy.ts";
import styles from "./first-run.module.css";

/** Text to type elsewhere, with a button that copies it. */
export function Command({ text, what }: { readonly text: string; readonly what: string }) {
  return (
    <div className={styles["command"]}>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard */}
      <pre tabIndex={0} aria-label={what}>
        {text}
      </pre>
      <IconButton label={`Copy: ${what}`} icon={<Copy size={14} />} onClick={() => void copyText(text, what)} />
    </div>
  );
}
