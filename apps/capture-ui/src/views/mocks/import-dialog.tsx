import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { ImportMocks } from "@headworks/capture-contract";
import type { OperationInput } from "@headworks/contract-kit";
import { type api, operations, operationUrl } from "../../api.ts";
import { mockCollectionsQuery, queryClient } from "../../queries.ts";
import { conditionSentence } from "../../rules/condition-draft.ts";
import { Failed, Refused } from "../../rules/rule-editor.tsx";
import shared from "../../rules/rule-parts.module.css";
import { sendFile } from "../../transfer/import.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field, Select, Switch, TextInput } from "../../ui/field.tsx";
import { formatBytes } from "../../ui/format.ts";
import { toast } from "../../ui/toast.tsx";
import styles from "./mocks.module.css";
import { HEAD_BYTES, sizeProblem, guessFormat } from "./import-format.ts";

const FORMATS = [
  { value: "har", label: "HAR" },
  { value: "openapi", label: "OpenAPI 3" },
  { value: "postman", label: "Postman collection" },
  { value: "json", label: "Weir export" },
] as const;

interface ImportOptions {
  readonly format: ImportMocks["format"];
  readonly collection: string;
  readonly enabled: boolean;
  readonly baseUrl: string;
}

/** Imports mocks from a document, after a preview. */
export function ImportDialog({ onClose }: { readonly onClose: () => void }) {
  const [file, setFile] = useState<File | null>(null);
  const [options, setOptions] = useState<ImportOptions>({ format: "har", collection: "", enabled: true, baseUrl: "" });
  const { format, collection, enabled, baseUrl } = options;
  const { sentBytes, send, stop } = useDocumentSending();
  const sendFile = async (isDryRun: boolean): Promise<ImportResponse> =>
    await send(file ?? new Blob(), {
      format,
      dry_run: isDryRun ? "true" : "false",
      enabled: enabled ? "true" : "false",
      ...(collection === "" ? {} : { collection_id: collection }),
      ...(format === "openapi" && baseUrl.trim() !== "" ? { base_url: baseUrl.trim() } : {}),
    });
  const close = (): void => {
    stop();
    onClose();
  };
  const dryRun = useMutation({ mutationFn: async () => await sendFile(true) });
  const make = useMutation({
    mutationFn: async () => await sendFile(false),
    onSuccess: async ({ imported }) => {
      await queryClient.invalidateQueries({ queryKey: ["mocks"] });
      toast({ tone: "success", title: imported === 1 ? "1 mock imported" : `${imported} mocks imported` });
      onClose();
    },
  });
  const change = (changed: Partial<ImportOptions>): void => {
    setOptions((before) => ({ ...before, ...changed }));
    dryRun.reset();
  };
  const choose = async (chosen: File | undefined): Promise<void> => {
    if (chosen === undefined) return;
    const head = await chosen.slice(0, HEAD_BYTES).text();
    setFile(chosen);
    change({ format: guessFormat(chosen.name, head) });
  };
  const problem = dryRun.error ?? make.error;
  const tooLarge = file === null ? undefined : sizeProblem(format, file.size);
  return (
    <Dialog
      open
      size="wide"
      onClose={close}
      onSubmit={() => (dryRun.data === undefined ? dryRun.mutate() : make.mutate())}
      title="Import mocks"
      description="HAR, OpenAPI 3.0 and 3.1, Postman 2.1, or a Weir export. Review before importing."
      actions={
        <>
          <Button onClick={close}>Cancel</Button>
          <Button
            type="submit"
            variant="primary"
            disabled={file === null || tooLarge !== undefined || sentBytes !== undefined}
          >
            {dryRun.data === undefined
              ? "Preview"
              : dryRun.data.imported === 1
                ? "Import 1 mock"
                : `Import ${dryRun.data.imported} mocks`}
          </Button>
        </>
      }
    >
      <Field label="Document">
        <input type="file" aria-label="Document" onChange={(event) => void choose(event.target.files?.[0])} />
      </Field>
      <ImportFields options={options} onChange={change} />
      <Refused>{tooLarge}</Refused>
      <Sending sentBytes={sentBytes} totalBytes={file?.size ?? 0} />
      <Failed error={problem} />
      {dryRun.data !== undefined && <Preview result={dryRun.data} />}
    </Dialog>
  );
}

function ImportFields({
  options,
  onChange,
}: {
  readonly options: ImportOptions;
  readonly onChange: (change: Partial<ImportOptions>) => void;
}) {
  const collections = useQuery(mockCollectionsQuery);
  return (
    <>
      <div className={styles["two"]}>
        <Field label="Format">
          <Select<ImportMocks["format"]>
            value={options.format}
            options={FORMATS}
            onChange={(next) => onChange({ format: next })}
          />
        </Field>
        <Field label="Collection">
          <Select
            value={options.collection}
            options={[
              { value: "", label: "None" },
              ...(collections.data ?? []).map(({ id, name }) => ({ value: id, label: name })),
            ]}
            onChange={(next) => onChange({ collection: next })}
          />
        </Field>
        {options.format === "openapi" && (
          <Field label="Base URL" hint="Overrides the document's servers">
            <TextInput
              mono
              placeholder="https://api.example.com"
              value={options.baseUrl}
              onChange={(event) => onChange({ baseUrl: event.target.value })}
            />
          </Field>
        )}
      </div>
      <Switch label="Enable immediately" checked={options.enabled} onChange={(next) => onChange({ enabled: next })} />
    </>
  );
}

function Sending({ sentBytes, totalBytes }: { readonly sentBytes: number | undefined; readonly totalBytes: number }) {
  if (sentBytes === undefined) return null;
  const isSent = sentBytes >= totalBytes;
  return (
    <p role="status" className={shared["quiet"]}>
      {isSent ? "Reading document" : `${formatBytes(sentBytes)} of ${formatBytes(totalBytes)} sent`}
    </p>
  );
}

function Preview({ result }: { readonly result: ImportResponse }) {
  const rules = "rules" in result ? result.rules : [];
  return (
    <div className={styles["preview"]} role="group" aria-label="Preview">
      <p role="status">
        {result.imported === 1 ? "1 mock" : `${result.imported} mocks`}
        {result.skipped > 0 && `, ${result.skipped} parts skipped`}
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

type ImportResponse = Awaited<ReturnType<typeof api.mocks.importMockDocument>>;
type ImportQuery = NonNullable<OperationInput<typeof operations.mocks.importMockDocument>["query"]>;

/** Uploads a document with progress; undefined while nothing is uploaded. */
function useDocumentSending(): {
  readonly sentBytes: number | undefined;
  readonly send: (file: Blob, query: ImportQuery) => Promise<ImportResponse>;
  readonly stop: () => void;
} {
  const [sentBytes, setSentBytes] = useState<number>();
  const [controller, setController] = useState<AbortController>();
  return {
    sentBytes,
    send: async (file, query) => {
      const current = new AbortController();
      setController(current);
      setSentBytes(0);
      try {
        const url = operationUrl(operations.mocks.importMockDocument, { query });
        return (await sendFile(url, file, setSentBytes, current.signal, "application/octet-stream")) as ImportResponse;
      } finally {
        setSentBytes(undefined);
      }
    },
    stop: () => controller?.abort(),
  };
}
