import type { ImportMocks } from "@headworks/capture-contract";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../../api.ts";
import { mockCollectionsQuery, queryClient } from "../../queries.ts";
import { conditionSentence } from "../../rules/condition-sentence.ts";
import { Failed } from "../../rules/refused.tsx";
import shared from "../../rules/rule-parts.module.css";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, Select, Switch, TextInput } from "../../ui/field.tsx";
import { toast } from "../../ui/toast.tsx";
import { guessFormat } from "./import-format.ts";
import styles from "./mocks.module.css";

const FORMATS = [
  { value: "har", label: "HAR" },
  { value: "openapi", label: "OpenAPI 3" },
  { value: "postman", label: "Postman collection" },
  { value: "json", label: "Export of Weir" },
] as const;

/** Makes mocks of a document: first shows what it would make, then makes it. */
export function ImportDialog({ onClose }: { readonly onClose: () => void }) {
  const collections = useQuery(mockCollectionsQuery);
  const [file, setFile] = useState<{ readonly name: string; readonly text: string } | null>(null);
  const [format, setFormat] = useState<ImportMocks["format"]>("har");
  const [collection, setCollection] = useState("");
  const [enabled, setEnabled] = useState(true);
  const [baseUrl, setBaseUrl] = useState("");
  const order = (dry: boolean): ImportMocks => ({
    format,
    data: file?.text ?? "",
    dry_run: dry,
    collection_id: collection === "" ? null : collection,
    enabled,
    ...(format === "openapi" && baseUrl.trim() !== "" ? { base_url: baseUrl.trim() } : {}),
  });
  const dryRun = useMutation({ mutationFn: () => api.mocks.importMocks({ body: order(true) }) });
  const make = useMutation({
    mutationFn: () => api.mocks.importMocks({ body: order(false) }),
    onSuccess: async ({ imported }) => {
      await queryClient.invalidateQueries({ queryKey: ["mocks"] });
      toast({ tone: "success", title: imported === 1 ? "One mock is made" : `${imported} mocks are made` });
      onClose();
    },
  });
  const change = (): void => dryRun.reset();
  const choose = async (chosen: File | undefined): Promise<void> => {
    if (chosen === undefined) return;
    const text = await chosen.text();
    setFile({ name: chosen.name, text });
    setFormat(guessFormat(chosen.name, text));
    change();
  };
  const problem = dryRun.error ?? make.error;
  return (
    <Dialog
      open
      size="wide"
      onClose={onClose}
      onSubmit={() => (dryRun.data === undefined ? dryRun.mutate() : make.mutate())}
      title="Import mocks"
      description="HAR, OpenAPI 3.0 and 3.1, Postman 2.1, or an export of Weir. Nothing is made before you have seen it."
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" variant="primary" disabled={file === null || dryRun.isPending || make.isPending}>
            {dryRun.data === undefined
              ? "Show what it makes"
              : dryRun.data.imported === 1
                ? "Make 1 mock"
                : `Make ${dryRun.data.imported} mocks`}
          </Button>
        </>
      }
    >
      <Field label="Document">
        <input type="file" aria-label="Document" onChange={(event) => void choose(event.target.files?.[0])} />
      </Field>
      <div className={styles["two"]}>
        <Field label="Format">
          <Select<ImportMocks["format"]>
            value={format}
            options={FORMATS}
            onChange={(next) => {
              setFormat(next);
              change();
            }}
          />
        </Field>
        <Field label="Collection">
          <Select
            value={collection}
            options={[
              { value: "", label: "None" },
              ...(collections.data ?? []).map(({ id, name }) => ({ value: id, label: name })),
            ]}
            onChange={(next) => {
              setCollection(next);
              change();
            }}
          />
        </Field>
        {format === "openapi" && (
          <Field label="Base URL" hint="Instead of the document's servers">
            <TextInput
              mono
              placeholder="https://api.example.com"
              value={baseUrl}
              onChange={(event) => {
                setBaseUrl(event.target.value);
                change();
              }}
            />
          </Field>
        )}
      </div>
      <Switch
        label="Answer at once"
        checked={enabled}
        onChange={(next) => {
          setEnabled(next);
          change();
        }}
      />
      <Failed error={problem} />
      {dryRun.data !== undefined && <Preview result={dryRun.data} />}
    </Dialog>
  );
}

function Preview({ result }: { readonly result: Awaited<ReturnType<typeof api.mocks.importMocks>> }) {
  const rules = "rules" in result ? result.rules : [];
  return (
    <div className={styles["preview"]} role="group" aria-label="What it makes">
      <p role="status">
        {result.imported === 1 ? "1 mock" : `${result.imported} mocks`}
        {result.skipped > 0 && `, ${result.skipped} parts are left out`}
      </p>
      {result.warnings.map((warning) => (
        <p key={warning} className={shared["quiet"]}>
          {warning}
        </p>
      ))}
      <ul className={shared["list"]}>
        {rules.map((rule) => (
          <li key={rule.id} className={shared["rule"]}>
            <span className={shared["open"]}>
              <span className={shared["name"]}>{rule.name}</span>
              <span className={shared["quiet"]}>{conditionSentence(rule.condition)}</span>
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}
