import { Dialog } from "../ui/dialog.tsx";
import { KeyHint } from "../ui/tag.tsx";
import { allKeys } from "./actions.ts";
import styles from "./cheat-sheet.module.css";
import { BINDINGS, type Binding } from "./keyboard.ts";

const GROUPS: readonly Binding["group"][] = ["Everywhere", "Screens", "Request", "List", "Paused"];

/** All keyboard shortcuts by group. */
export function CheatSheet({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog open onClose={onClose} title="Keyboard shortcuts" size="wide">
      <div className={styles["groups"]}>
        {GROUPS.map((group) => (
          <section key={group}>
            <h3 className={styles["title"]}>{group === "Paused" ? "Breakpoints" : group}</h3>
            <dl>
              {BINDINGS.filter((binding) => binding.group === group).map((binding) => (
                <div key={binding.action} className={styles["line"]}>
                  <dt>{binding.label}</dt>
                  <dd>
                    {allKeys(binding.keys).map((keys) => (
                      <KeyHint key={keys} keys={keys} />
                    ))}
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
