import type { NewRewriteRule, RewriteDryRunResult } from "@headworks/capture-contract";
import { useMutation } from "@tanstack/react-query";
import { Play } from "lucide-react";
import { useState } from "react";
import { api } from "../../api.ts";
import { EntryPicker } from "../../rules/entry-picker.tsx";
import { bodyLines, headLines } from "../../rules/message-text.ts";
import { Failed } from "../../rules/refused.tsx";
import shared from "../../rules/rule-parts.module.css";
import { Button } from "../../ui/button.tsx";
import { DiffView } from "../../ui/diff-view.tsx";
import styles from "./rewrites.module.css";

/** Tries the rule as it is written on a captured entry: nothing is sent, nothing is stored. */
export function DryRun({ rule, entryId }: { readonly rule: NewRewriteRule | null; readonly entryId: string | null }) {
  const [chosen, setChosen] = useState<string | null>(entryId);
  const run = useMutation({
    mutationFn: (body: { readonly entry_id: string; readonly rule: NewRewriteRule }) =>
      api.rewrites.dryRunRewrite({ body }),
  });
  const start = (): void => {
    if (rule !== null && chosen !== null) run.mutate({ entry_id: chosen, rule });
  };
  return (
    <section className={styles["try"]} aria-label="Try it">
      <h3>Try it on captured traffic</h3>
      <div className={styles["tryLine"]}>
        <EntryPicker value={chosen} onChange={setChosen} />
        <Button icon={<Play size={13} />} disabled={rule === null || chosen === null || run.isPending} onClick={start}>
          Try
        </Button>
      </div>
      {rule === null && <p className={shared["quiet"]}>The rule is not whole yet.</p>}
      <Failed error={run.error} />
      {run.data !== undefined && <Outcome result={run.data} />}
    </section>
  );
}

function Outcome({ result }: { readonly result: RewriteDryRunResult }) {
  const { request, response } = result;
  return (
    <div className={styles["outcome"]}>
      <p role="status">
        {!result.matched
          ? "The rule does not match this exchange."
          : result.changed
            ? "The rule matches and changes this:"
            : "The rule matches, and changes nothing."}
      </p>
      {result.trace.length > 0 && (
        <ul className={shared["changes"]}>
          {result.trace
            .flatMap((step) => step.changes)
            .map((change, index) => (
              <li key={`${index}`}>{change}</li>
            ))}
        </ul>
      )}
      {result.changed && (
        <>
          <h4>Request</h4>
          <DiffView
            label="Changes of the request"
            same="The request stays as it is."
            left={[...headLines(request.before), "", ...bodyLines(request.before)]}
            right={[...headLines(request.after), "", ...bodyLines(request.after)]}
          />
          {response !== null && (
            <>
              <h4>Answer</h4>
              <DiffView
                label="Changes of the answer"
                same="The answer stays as it is."
                left={
                  response.before === null ? [] : [...headLines(response.before), "", ...bodyLines(response.before)]
                }
                right={[...headLines(response.after), "", ...bodyLines(response.after)]}
              />
            </>
          )}
        </>
      )}
    </div>
  );
}
