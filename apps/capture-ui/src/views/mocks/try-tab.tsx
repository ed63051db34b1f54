import type { MockRule } from "@headworks/capture-contract";
import { useMutation } from "@tanstack/react-query";
import { Play } from "lucide-react";
import { useState } from "react";
import { api } from "../../api.ts";
import { EntryPicker } from "../../rules/entry-picker.tsx";
import { jsonLines } from "../../rules/message-text.ts";
import { Failed } from "../../rules/refused.tsx";
import shared from "../../rules/rule-parts.module.css";
import { Button } from "../../ui/button.tsx";
import { Field, TextInput } from "../../ui/field.tsx";
import { Segmented } from "../../ui/segmented.tsx";
import styles from "./mocks.module.css";

/** Whether the stored rule would answer a request, why, and which rule would. Nothing is sent. */
export function TryTab({ rule }: { readonly rule: MockRule }) {
  const [by, setBy] = useState<"entry" | "url">("entry");
  const [entryId, setEntryId] = useState<string | null>(null);
  const [method, setMethod] = useState("GET");
  const [url, setUrl] = useState("");
  const run = useMutation({
    mutationFn: async () => {
      const body = by === "entry" ? { entry_id: entryId ?? "" } : { request: { method, url } };
      return {
        test: await api.mocks.testMock({ params: { id: rule.id }, body }),
        preview: await api.mocks.previewMock({ body }),
      };
    },
  });
  const { data } = run;
  return (
    <div className={styles["panel"]}>
      <Segmented
        label="What is tried"
        value={by}
        options={[
          { value: "entry", label: "A captured request" },
          { value: "url", label: "A request I write" },
        ]}
        onChange={setBy}
      />
      {by === "entry" ? (
        <EntryPicker value={entryId} onChange={setEntryId} />
      ) : (
        <div className={styles["answerHead"]}>
          <Field label="Method" className={styles["short"]}>
            <TextInput mono maxLength={64} value={method} onChange={(event) => setMethod(event.target.value)} />
          </Field>
          <Field label="URL" className={styles["grow"]}>
            <TextInput
              mono
              placeholder="https://api.example.com/orders"
              value={url}
              onChange={(event) => setUrl(event.target.value)}
            />
          </Field>
        </div>
      )}
      <div>
        <Button
          icon={<Play size={13} />}
          disabled={run.isPending || (by === "entry" ? entryId === null : !URL.canParse(url))}
          onClick={() => run.mutate()}
        >
          Try
        </Button>
      </div>
      <Failed error={run.error} />
      {data !== undefined && (
        <>
          <p role="status">
            {data.test.matches ? "This mock matches." : "This mock does not match."}{" "}
            {data.preview.matched
              ? data.preview.rule_id === rule.id
                ? "It would answer:"
                : `${data.preview.rule_name ?? "Another one"} would answer:`
              : (data.preview.message ?? "No mock would answer.")}
          </p>
          {data.preview.response !== undefined && (
            <pre className={styles["preview"]}>{jsonLines(data.preview.response).join("\n")}</pre>
          )}
          <ul className={shared["changes"]} aria-label="What decided">
            {data.test.explanation.map((part, index) => (
              <li key={`${index}`}>{part}</li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}
