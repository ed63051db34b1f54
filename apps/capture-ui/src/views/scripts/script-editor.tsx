import type { NewScript, Script, ScriptValidation } from "@headworks/capture-contract";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { api } from "../../api.ts";
import { Refused, type RuleDraft, RuleEditor, useRuleForm } from "../../rules/rule-editor.tsx";
import { lazyView } from "../../shell/lazy-view.tsx";
import { SplitPane } from "../../ui/split-pane.tsx";
import { EmptyState, Spinner } from "../../ui/states.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { hasSameHooks, hookWords, type ScriptDraft, scriptOf } from "./script-draft.ts";
import { HistoryPanel, SCRIPT_FIELDS, SettingsPanel, TestPanel, useTrial } from "./script-panels.tsx";
import styles from "./scripts.module.css";

/** The code editor is larger than the rest of the screen, so it has a chunk of its own. */
export const SourceEditor = lazyView(
  async () => (await import("./source-editor.tsx")).SourceEditor,
  <EmptyState icon={<Spinner />} title="" />,
);

export type ScriptPart = "test" | "history" | "settings";

/** Idle time after which the edited source is checked. */
const CHECK_AFTER_MS = 300;
/** Panes narrower than this show the panels below the source. */
const MIN_BESIDE_PX = 820;

/** Creates or edits a script, tests it, and shows its history. */
export function ScriptEditor({
  name,
  start,
  script,
  entryId,
  onClose,
  onSaved,
}: {
  readonly name: string;
  readonly start: RuleDraft<ScriptDraft>;
  /** The stored script; null for a new one. */
  readonly script: Script | null;
  /** The entry tested first. */
  readonly entryId: string | null;
  readonly onClose: () => void;
  readonly onSaved: (id: string) => void;
}) {
  const { draft, built, refused, set, editor } = useRuleForm({
    name,
    start,
    topic: "scripts",
    fields: SCRIPT_FIELDS,
    build: scriptOf,
    onSaved,
    save: async (body: NewScript) => {
      if (script === null) return (await api.scripts.createScript({ body })).id;
      const { hooks, ...rest } = body;
      // Unless they were edited, the service derives them from the source.
      const isEdited = hooks !== undefined && !hasSameHooks(hooks, script.hooks);
      await api.scripts.updateScript({ params: { id: script.id }, body: isEdited ? body : rest });
      return script.id;
    },
  });
  const [part, setPart] = useState<ScriptPart>(script === null && draft.name === "" ? "settings" : "test");
  const trial = useTrial(entryId);
  const validation = useValidation(draft.source);
  const hooks = useHooks(draft, script, validation);
  const onSubmit = (): void => {
    if (!built.ok && draft.source.trim() !== "") setPart("settings");
    editor.onSubmit();
  };
  // The refused fields may be in another tab.
  const isHidden = Object.keys(refused.fields).some(isSetting);
  const [wasHidden, setWasHidden] = useState(false);
  if (isHidden !== wasHidden) {
    setWasHidden(isHidden);
    if (isHidden) setPart("settings");
  }
  const [pane, isWide] = useWide(MIN_BESIDE_PX);
  return (
    <RuleEditor noun="script" name={script?.name ?? null} {...editor} onSubmit={onSubmit} onClose={onClose}>
      <div ref={pane} className={styles["workspace"]}>
        <Workspace isWide={isWide}>
          <SourcePane draft={draft} set={set} validation={validation} refused={refused.fields["source"]} />
          <div className={styles["side"]}>
            <Tabs<ScriptPart>
              label="Script views"
              value={part}
              onChange={setPart}
              tabs={[
                {
                  value: "test",
                  label: "Test",
                  content: () => <TestPanel trial={trial} source={draft.source} declared={validation?.hooks ?? []} />,
                },
                ...(script === null
                  ? []
                  : [
                      {
                        value: "history" as const,
                        label: "History",
                        content: () => <HistoryPanel id={script.id} name={script.name} />,
                      },
                    ]),
                {
                  value: "settings",
                  label: "Settings",
                  content: () => (
                    <SettingsPanel
                      draft={draft}
                      set={set}
                      refused={refused.fields}
                      hooks={hooks}
                      declared={validation?.hooks ?? null}
                    />
                  ),
                },
              ]}
            />
            <Refused>{refused.general}</Refused>
          </div>
        </Workspace>
      </div>
    </RuleEditor>
  );
}

function isSetting(field: string): boolean {
  return field !== "source";
}

function Workspace({
  isWide,
  children: [first, second],
}: {
  readonly isWide: boolean;
  readonly children: readonly [ReactNode, ReactNode];
}) {
  const [shares, setShares] = useState({ row: 0.58, column: 0.52 });
  const direction = isWide ? "row" : "column";
  return (
    <SplitPane
      label="Resize source"
      direction={direction}
      share={shares[direction]}
      onShareChange={(share) => setShares({ ...shares, [direction]: share })}
      first={first}
      second={second}
    />
  );
}

function SourcePane({
  draft,
  set,
  validation,
  refused,
}: {
  readonly draft: ScriptDraft;
  readonly set: (change: Partial<ScriptDraft>) => void;
  readonly validation: Checked | undefined;
  readonly refused: string | undefined;
}) {
  const types = useQuery({
    queryKey: ["script-types"],
    queryFn: async ({ signal }) => (await api.scripts.getScriptTypes({ signal })).text(),
    staleTime: Infinity,
  });
  const isInvalid = validation?.valid === false;
  return (
    <div className={styles["source"]}>
      <div className={styles["code"]}>
        <SourceEditor.View
          label="Source"
          value={draft.source}
          onChange={(source) => set({ source })}
          types={types.data}
          validation={validation}
        />
      </div>
      <div className={styles["status"]} data-invalid={isInvalid || refused !== undefined || undefined} role="status">
        {refused ?? statusText(validation)}
      </div>
    </div>
  );
}

type Checked = ScriptValidation & { readonly source: string };

function statusText(validation: Checked | undefined): string {
  if (validation === undefined) return "Checking…";
  const { valid, error = "Syntax error", line, column, hooks = [] } = validation;
  if (valid) return hooks.length === 0 ? "No syntax errors, but no hook is declared" : `Declares ${hookWords(hooks)}`;
  // Messages of the interpreter may name the line themselves.
  const isPlaced = line === undefined || error.includes(`line ${line}`);
  return isPlaced ? error : `Line ${line}${column === undefined ? "" : `, column ${column}`}: ${error}`;
}

/** The service's check of a source, once it is no longer being typed; until then that of an earlier text. */
function useValidation(source: string): Checked | undefined {
  const [settled, setSettled] = useState(source);
  useEffect(() => {
    const timer = window.setTimeout(() => setSettled(source), CHECK_AFTER_MS);
    return () => window.clearTimeout(timer);
  }, [source]);
  return useCheck(settled).data;
}

function useCheck(source: string) {
  return useQuery({
    queryKey: ["script-validation", source],
    queryFn: async ({ signal }): Promise<Checked> => ({
      ...(await api.scripts.validateScript({ body: { source }, signal })),
      source,
    }),
    staleTime: Infinity,
    gcTime: 60_000,
    placeholderData: (previous) => previous,
  });
}

/** The hooks that will call the script: the chosen ones, or those that the source declares. */
function useHooks(draft: ScriptDraft, script: Script | null, validation: Checked | undefined) {
  const stored = useCheck(script?.source ?? "").data;
  const followsSource =
    draft.hooks === null ||
    (script !== null &&
      hasSameHooks(draft.hooks, script.hooks) &&
      stored?.source === script.source &&
      hasSameHooks(script.hooks, stored.hooks ?? []));
  return followsSource && validation?.valid === true ? (validation.hooks ?? []) : (draft.hooks ?? []);
}

/** Whether an element is at least this wide. */
function useWide(minPx: number): readonly [(element: HTMLElement | null) => void, boolean] {
  const [element, setElement] = useState<HTMLElement | null>(null);
  const [isWide, setWide] = useState(true);
  useEffect(() => {
    if (element === null) return undefined;
    const observer = new ResizeObserver(([entry]) => setWide((entry?.contentRect.width ?? 0) >= minPx));
    observer.observe(element);
    return () => observer.disconnect();
  }, [element, minPx]);
  return [setElement, isWide];
}
