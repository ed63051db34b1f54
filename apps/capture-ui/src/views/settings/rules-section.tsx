import { type ConfigImport, MAX_IMPORT_BYTES, type RulesImport } from "@headworks/capture-contract";
import { useMutation } from "@tanstack/react-query";
import { Download, FileInput, Save, Undo2 } from "lucide-react";
import { useState } from "react";
import { api, ApiFailure, errorText } from "../../api.ts";
import { queryClient } from "../../queries.ts";
import { exportRules, exportSettings } from "../../transfer/export.ts";
import { Button } from "../../ui/button.tsx";
import { confirmAction, Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";
import { formatBytes, formatCount, formatDateTime } from "../../ui/format.ts";
import { Card } from "../../ui/page.tsx";
import { Segmented } from "../../ui/segmented.tsx";
import { attempt, toast } from "../../ui/toast.tsx";
import { type BundleKind, positionInFile, readBundle, sectionLabel } from "./bundle.ts";
import { SectionActions } from "./section.tsx";
import { ConfigForm } from "./setting-group.tsx";
import { type SettingGroup, settingLabel } from "./setting-model.ts";
import styles from "./settings.module.css";

/** Rule limits, export, import, and the snapshot of rules. */
export function RulesSection({ group }: { readonly group: SettingGroup }) {
  return (
    <Card id={group.id} title={group.title}>
      <div className={styles["section"]}>
        <RuleFiles />
        <SavedRules />
        <ConfigForm group={group} />
      </div>
    </Card>
  );
}

function RuleFiles() {
  const [importing, setImporting] = useState(false);
  return (
    <div className={styles["part"]} role="group" aria-labelledby="rules-as-a-file">
      <h3 id="rules-as-a-file">Export and import</h3>
      <p className={styles["quiet"]}>
        Mocks, rewrites, breakpoints, blocked hosts and other rules, to use in another Weir or keep in a repository.
        Exports contain no passwords.
      </p>
      <SectionActions>
        <Button icon={<Download size={14} />} onClick={() => void exportRules()}>
          Export rules
        </Button>
        <Button icon={<Download size={14} />} onClick={() => void exportSettings()}>
          Export rules and settings
        </Button>
        <Button icon={<FileInput size={14} />} onClick={() => setImporting(true)}>
          Import…
        </Button>
      </SectionActions>
      {importing && <BundleDialog onClose={() => setImporting(false)} />}
    </div>
  );
}

function SavedRules() {
  const save = useMutation({
    mutationFn: () =>
      attempt("Could not save the rules snapshot", async () => {
        const { saved_at: at } = await api.persistence.saveRules({ headers: { "x-weir-confirm": "true" } });
        toast({
          tone: "success",
          title: "Rules snapshot saved",
          text: `Taken at ${formatDateTime(Date.parse(at))}.`,
        });
      }),
  });
  const load = useMutation({
    mutationFn: () =>
      attempt("Could not restore the rules snapshot", async () => {
        const { saved_at: at } = await api.persistence.loadRules({});
        if (at === null) {
          toast({ title: "No rules snapshot", text: "Nothing was changed." });
          return;
        }
        await queryClient.invalidateQueries();
        toast({
          tone: "success",
          title: "Rules snapshot restored",
          text: `Taken at ${formatDateTime(Date.parse(at))}.`,
        });
      }),
  });
  const askToSave = async (): Promise<void> => {
    const sure = await confirmAction({
      title: "Save a rules snapshot?",
      text: "The previous snapshot is overwritten.",
      action: "Save",
    });
    if (sure) save.mutate();
  };
  const askToLoad = async (): Promise<void> => {
    const sure = await confirmAction({
      title: "Restore the rules snapshot?",
      text: "Changes made to rules since then are lost.",
      action: "Restore",
      danger: true,
    });
    if (sure) load.mutate();
  };
  return (
    <div className={styles["part"]} role="group" aria-labelledby="rules-saved">
      <h3 id="rules-saved">Rules snapshot</h3>
      <p className={styles["quiet"]}>Save one snapshot of all rules to restore later.</p>
      <SectionActions>
        <Button icon={<Save size={14} />} disabled={save.isPending} onClick={() => void askToSave()}>
          Save snapshot
        </Button>
        <Button icon={<Undo2 size={14} />} disabled={load.isPending} onClick={() => void askToLoad()}>
          Restore snapshot
        </Button>
      </SectionActions>
    </div>
  );
}

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

function BundleDialog({ onClose }: { readonly onClose: () => void }) {
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
