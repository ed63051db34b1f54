import type { Suggestion } from "@headworks/query-language";
import { classNames } from "../../../ui/class-names.ts";
import styles from "./query-bar.module.css";

/** The id of a suggestion's element, for `aria-activedescendant`. */
export function suggestionId(listId: string, index: number): string {
  return `${listId}-${index}`;
}

/** Below the filter while it has the focus: what it means or what is wrong with it, and what could come next. */
export function CompletionList({
  listId,
  sayId,
  sentence,
  wrong,
  suggestions,
  chosen,
  onAccept,
}: {
  readonly listId: string;
  readonly sayId: string;
  readonly sentence: string | undefined;
  readonly wrong: boolean;
  readonly suggestions: readonly Suggestion[];
  readonly chosen: number;
  readonly onAccept: (suggestion: Suggestion) => void;
}) {
  return (
    <div className={styles["popup"]}>
      {sentence !== undefined && (
        <p
          id={sayId}
          className={classNames(styles["say"], wrong && styles["wrong"])}
          role={wrong ? "alert" : undefined}
        >
          {sentence}
        </p>
      )}
      <div id={listId} role="listbox" aria-label="Completions">
        {suggestions.map((suggestion, index) => (
          <div
            key={`${suggestion.kind} ${suggestion.label}`}
            id={suggestionId(listId, index)}
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            className={styles["option"]}
            onPointerDown={(event) => {
              // The input keeps the focus.
              event.preventDefault();
              onAccept(suggestion);
            }}
          >
            <code>{suggestion.label}</code>
            <span className={styles["detail"]}>{suggestion.detail}</span>
          </div>
        ))}
      </div>
      <p className={styles["hint"]}>Tab completes, arrows choose, Enter applies</p>
    </div>
  );
}
