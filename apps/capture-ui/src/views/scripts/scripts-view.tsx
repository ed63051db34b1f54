import type { Script, ScriptTemplate } from "@headworks/capture-contract";
import { useQuery } from "@tanstack/react-query";
import { CodeXml, LayoutTemplate, Plus, SlidersHorizontal } from "lucide-react";
import { useMemo, useState } from "react";
import { api } from "../../api.ts";
import { scriptsQuery } from "../../queries.ts";
import { copyName } from "../../rules/from-entry.ts";
import { type RuleDraft, usePrefill } from "../../rules/rule-editor.tsx";
import { ListWaiting, RuleRow, RuleRows, RuleWorkbench, useReordering, useRuleList } from "../../rules/rule-list.tsx";
import { inOrder } from "../../rules/rule-order.ts";
import { isKept } from "../../rules/stored-draft.ts";
import { navigate, setParams, useLocation } from "../../shell/router.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Page } from "../../ui/page.tsx";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import { Tag } from "../../ui/tag.tsx";
import {
  bodyOfScript,
  draftOfScript,
  draftOfTemplate,
  filterWords,
  hookWords,
  newScript,
  type ScriptDraft,
  scriptFromEntry,
} from "./script-draft.ts";
import { ScriptEditor, SourceEditor } from "./script-editor.tsx";
import styles from "./scripts.module.css";

interface Start {
  readonly key: string;
  readonly draft: RuleDraft<ScriptDraft>;
  readonly script: Script | null;
}

function startOf(key: string, form: ScriptDraft, script: Script | null = null): Start {
  return { key, draft: { form, condition: null }, script };
}

/** Name under which a script's unsaved draft is kept. */
const nameOf = (key: string): string => `script ${key}`;

/** A new script gets the key of the last new one until that is saved, so that an unsaved one is found again. */
let savedCount = 0;

/** JavaScript that runs for exchanges: list, editor, test, history. */
export function ScriptsView() {
  const scripts = useQuery(scriptsQuery);
  const { params } = useLocation();
  const [fresh, setFresh] = useState<{ readonly key: string; readonly draft: ScriptDraft } | null>(null);
  /** Keys of new scripts by id: their editors stay open when they are stored, with cursor and undo history. */
  const [keys] = useState(() => new Map<string, string>());
  const [choosing, setChoosing] = useState(false);
  const prefill = usePrefill();
  const id = params.get("id");
  const list = inOrder(scripts.data ?? []);
  const chosen = list.find((script) => script.id === id);
  const isLoaded = scripts.data !== undefined;
  const start = useMemo((): Start | null => {
    if (prefill !== null) return startOf(prefill.id, scriptFromEntry(prefill.request));
    if (id === null) return fresh === null ? null : startOf(fresh.key, fresh.draft);
    const key = keys.get(id) ?? id;
    if (chosen !== undefined) return startOf(key, draftOfScript(chosen), chosen);
    // Deleted by another client during editing.
    return isLoaded && isKept(nameOf(key)) ? startOf(key, newScript()) : null;
  }, [prefill, fresh, keys, chosen, id, isLoaded]);
  const begin = (draft: ScriptDraft, key: string): void => {
    setFresh({ key: `${key} ${savedCount}`, draft });
    setChoosing(false);
    setParams({ id: null, from: null }, { replace: true });
  };
  const show = (script: Script | null): void => {
    setFresh(null);
    setParams({ id: script?.id ?? null, from: null }, { replace: true });
  };
  const choose = (
    <Button icon={<LayoutTemplate size={14} />} onClick={() => setChoosing(true)}>
      Templates
    </Button>
  );
  const add = (
    <Button variant="primary" icon={<Plus size={14} />} onClick={() => begin(newScript(), "new")}>
      New script
    </Button>
  );
  const page = (
    <Page
      title="Scripts"
      description="JavaScript that reads and changes traffic. Scripts run from top to bottom. Drag to reorder."
      actions={
        <>
          <Button icon={<SlidersHorizontal size={14} />} onClick={() => navigate("/settings#scripts")}>
            Limits
          </Button>
          {choose}
          {add}
        </>
      }
    >
      <ListWaiting noun="scripts" query={scripts} />
      {scripts.isSuccess && list.length === 0 && (
        <EmptyState icon={<CodeXml size={28} />} title="No scripts">
          Change requests and responses, respond without the server, or check messages with a few lines of JavaScript.
          Start from a template, or from any request in Traffic.
        </EmptyState>
      )}
      {list.length > 0 && <ScriptList scripts={list} chosenId={chosen?.id ?? null} onShow={show} />}
    </Page>
  );
  const editor =
    start === null ? null : (
      <ScriptEditor
        key={start.key}
        name={nameOf(start.key)}
        start={start.draft}
        script={start.script}
        entryId={prefill?.id ?? null}
        onClose={() => show(null)}
        onSaved={(saved) => {
          savedCount += 1;
          keys.set(saved, start.key);
          setParams({ id: saved, from: null }, { replace: true });
        }}
      />
    );
  return (
    <>
      <RuleWorkbench list={page} editor={editor} share={0.3} />
      {choosing && (
        <TemplateDialog
          onChoose={(template) => begin(draftOfTemplate(template), template.name)}
          onClose={() => setChoosing(false)}
        />
      )}
    </>
  );
}

/** The error of each script's newest run, if that failed. */
function useLastErrors(): ReadonlyMap<string, string> {
  const runs = useQuery({
    queryKey: ["scripts", "history", "all"],
    queryFn: ({ signal }) => api.scripts.listScriptHistory({ query: { limit: 200 }, signal }),
    refetchInterval: 5000,
  });
  const { data } = runs;
  return useMemo(() => {
    const newest = new Map((data ?? []).toReversed().map((run) => [run.script_id, run]));
    return new Map([...newest.values()].flatMap(({ script_id: id, error }) => (error === null ? [] : [[id, error]])));
  }, [data]);
}

/** Scripts in the order in which they run. */
function ScriptList({
  scripts,
  chosenId,
  onShow,
}: {
  readonly scripts: readonly Script[];
  readonly chosenId: string | null;
  readonly onShow: (script: Script | null) => void;
}) {
  const errors = useLastErrors();
  const actions = useRuleList<Script>({
    topic: "scripts",
    noun: "script",
    toggle: (script, enabled) => api.scripts.toggleScript({ params: { id: script.id }, body: { enabled } }),
    remove: async (script) => {
      await api.scripts.deleteScript({ params: { id: script.id } });
      if (script.id === chosenId) onShow(null);
    },
    restore: (script) => api.scripts.createScript({ body: bodyOfScript(script) }),
    duplicate: (script) => api.scripts.createScript({ body: { ...bodyOfScript(script), name: copyName(script.name) } }),
  });
  const place = useReordering<Script>(scriptsQuery.queryKey, ({ id }, priority) =>
    api.scripts.reorderScript({ params: { id }, body: { priority } }),
  );
  return (
    <RuleRows label="Scripts">
      {scripts.map((script) => {
        const { row, menu } = place(script);
        const error = script.problem ?? errors.get(script.id);
        return (
          <RuleRow
            key={script.id}
            {...row}
            rule={script}
            isChosen={script.id === chosenId}
            lines={[
              filterWords(script.match_filter),
              error === undefined ? (
                hookWords(script.hooks)
              ) : (
                <span key="error" className={styles["failure"]} title={error}>
                  {error}
                </span>
              ),
            ]}
            mark={
              script.problem !== null ? (
                <Tag tone="error">cannot run</Tag>
              ) : error !== undefined ? (
                <Tag tone="error">last run failed</Tag>
              ) : isKept(nameOf(script.id)) ? (
                <Tag tone="neutral">unsaved changes</Tag>
              ) : undefined
            }
            onToggle={(enabled) => actions.toggle(script, enabled)}
            onShow={() => onShow(script)}
            menu={() => [
              ...menu,
              { kind: "separator" },
              { kind: "item", label: "Duplicate", onSelect: () => actions.duplicate(script) },
              { kind: "item", label: "Delete", danger: true, onSelect: () => actions.remove(script) },
            ]}
          />
        );
      })}
    </RuleRows>
  );
}

/** Chooses a template; its source is shown before. */
function TemplateDialog({
  onChoose,
  onClose,
}: {
  readonly onChoose: (template: ScriptTemplate) => void;
  readonly onClose: () => void;
}) {
  const templates = useQuery({
    queryKey: ["script-templates"],
    queryFn: ({ signal }) => api.scripts.listScriptTemplates({ signal }),
    staleTime: Infinity,
  });
  const [name, setName] = useState<string | null>(null);
  const shown = templates.data?.find((template) => template.name === name) ?? templates.data?.[0];
  return (
    <Dialog
      open
      onClose={onClose}
      title="New from template"
      size="wide"
      description="Each creates a script that you can edit before saving."
      actions={
        <Button
          variant="primary"
          disabled={shown === undefined}
          onClick={() => {
            if (shown !== undefined) onChoose(shown);
          }}
        >
          Use template
        </Button>
      }
    >
      {templates.error !== null && <ErrorState title="Could not load the templates" error={templates.error} />}
      {templates.isPending && <EmptyState icon={<Spinner />} title="" />}
      {shown !== undefined && (
        <div className={styles["templates"]}>
          <ul className={styles["templateList"]} aria-label="Templates">
            {templates.data?.map((template) => (
              <li key={template.name}>
                <button
                  type="button"
                  aria-pressed={template === shown}
                  onClick={() => setName(template.name)}
                  onDoubleClick={() => onChoose(template)}
                >
                  <b>{template.name}</b>
                  <span>{template.description}</span>
                </button>
              </li>
            ))}
          </ul>
          <div className={styles["preview"]}>
            <SourceEditor.View label={`Source of ${shown.name}`} value={shown.source} />
          </div>
        </div>
      )}
    </Dialog>
  );
}
