import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { type ConfigImport, MAX_IMPORT_BYTES, type RulesImport } from "@headworks/capture-contract";
import { api, ApiFailure, errorText } from "../../api.ts";
import { queryClient } from "../../queries.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";
import { formatBytes, formatCount } from "../../ui/format.ts";
import { Segmented } from "../../ui/segmented.tsx";
import { toast } from "../../ui/toast.tsx";
import { settingLabel } from "./setting-model.ts";
import styles from "./settings.module.css";
import { type BundleKind, readBundle, sectionLabel, positionInFile } from "./bundle.ts";

type Mode = RulesImport["mode"];
type Outcome = RulesImport | ConfigImport;

interface Chosen {
  readonly text: string;
  readonly kind: BundleKind;
}

const MODES = [
  { value: "merge", label: "Add and overwrite" },
  { value: "replace", label: "Replace" },
] as const;

const ABOUT: Readonly<Record<Mode, string>> = {
  merge: "Rules are added and overwrite those with the same ID. Other rules are kept.",
  replace: "Removes all other rules of the kinds contained in the file.",
};

export function BundleDialog({ onClose }: { readonly onClose: () => void }) {
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const [problem, setProblem] = useState<string>();
  const [mode, setMode] = useState<Mode>("merge");
  const take = async (dry: boolean): Promise<Outcome> => {
    const input = { query: { mode, dry_run: dry ? "true" : "false" }, body: chosen?.text ?? "" } as const;
    return chosen?.kind === "config" ? await api.config.importConfig(input) : await api.persistence.importRules(input);
  };
  const dryRun = useMutation({ mutationFn: () => take(true) });
  const make = useMutation({
    mutationFn: () => take(false),
    onSuccess: async () => {
      await queryClient.invalidateQueries();
      toast({
        tone: "success",
        title: chosen?.kind === "config" ? "Rules and settings imported" : "Rules imported",
      });
      onClose();
    },
  });
  const reset = (): void => {
    dryRun.reset();
    make.reset();
  };
  const choose = async (file: File | undefined): Promise<void> => {
    if (file === undefined) return;
    reset();
    setChosen(null);
    if (file.size > MAX_IMPORT_BYTES) {
      setProblem(`The file is ${formatBytes(file.size)}; the limit is ${formatBytes(MAX_IMPORT_BYTES)}`);
      return;
    }
    const text = await file.text();
    const read = readBundle(text);
    setProblem(read.ok ? undefined : read.message);
    if (read.ok) setChosen({ text, kind: read.kind });
  };
  const outcome = dryRun.data;
  const removes = outcome !== undefined && Object.values(outcome.sections).some(({ removed }) => removed > 0);
  return (
    <Dialog
      open
      size="wide"
      onClose={onClose}
      onSubmit={() => (outcome === undefined ? dryRun.mutate() : make.mutate())}
      title="Import rules"
      description="A file written by “Export rules” or “Export rules and settings”. Review before importing."
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            type="submit"
            variant={removes ? "danger" : "primary"}
            disabled={chosen === null || dryRun.isPending || make.isPending}
          >
            {outcome === undefined ? "Preview" : removes ? "Import and remove" : "Import"}
          </Button>
        </>
      }
    >
      <Field label="File" error={problem}>
        <input
          type="file"
          accept=".json,application/json"
          aria-label="File"
          onChange={(event) => void choose(event.target.files?.[0])}
        />
      </Field>
      <div className={styles["mode"]}>
        <Segmented
          label="Existing rules"
          value={mode}
          options={MODES}
          onChange={(next) => {
            setMode(next);
            reset();
          }}
        />
        <span className={styles["quiet"]}>{ABOUT[mode]}</span>
      </div>
      {(dryRun.error ?? make.error) !== null && <Refusal error={dryRun.error ?? make.error} />}
      {outcome !== undefined && <Changes outcome={outcome} />}
    </Dialog>
  );
}

/** All validation errors with their positions in the file. */
function Refusal({ error }: { readonly error: unknown }) {
  const details: readonly unknown[] = error instanceof ApiFailure && Array.isArray(error.details) ? error.details : [];
  const issues = details.flatMap((detail) => {
    const { path, message } = (detail ?? {}) as { readonly path?: unknown; readonly message?: unknown };
    return typeof path === "string" && typeof message === "string" ? [{ path: positionInFile(path), message }] : [];
  });
  return (
    <div className={styles["problem"]} role="alert">
      <p>{issues.length === 0 ? errorText(error) : "The file was rejected; nothing was changed."}</p>
      {issues.length > 0 && (
        <ul className={styles["issues"]}>
          {issues.map(({ path, message }) => (
            <li key={`${path} ${message}`}>
              {path !== "" && <code>{path}</code>} {message}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

const COLUMNS = ["added", "updated", "removed", "unchanged"] as const;

function Changes({ outcome }: { readonly outcome: Outcome }) {
  const sections = Object.entries(outcome.sections);
  const settings = "settings" in outcome ? outcome.settings : [];
  return (
    <div className={styles["changes"]} role="group" aria-label="Preview">
      {sections.length === 0 ? (
        <p>The file contains no rules.</p>
      ) : (
        <table aria-label="Rules by kind">
          <thead>
            <tr>
              <th scope="col">Rules</th>
              {COLUMNS.map((column) => (
                <th key={column} scope="col">
                  {column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {sections.map(([section, counts]) => (
              <tr key={section}>
                <th scope="row">{sectionLabel(section)}</th>
                {COLUMNS.map((column) => (
                  <td key={column} data-removed={(column === "removed" && counts.removed > 0) || undefined}>
                    {counts[column] === 0 ? "–" : formatCount(counts[column])}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {"settings" in outcome && (
        <p>
          {settings.length === 0
            ? "No settings change."
            : `Changed settings: ${settings.map(settingLabel).join(", ")}.`}
        </p>
      )}
    </div>
  );
}
