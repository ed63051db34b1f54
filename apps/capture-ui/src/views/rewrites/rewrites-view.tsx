import { useQuery } from "@tanstack/react-query";
import { LayoutTemplate, Plus, Replace } from "lucide-react";
import { useMemo, useState } from "react";
import type { RewriteRule } from "@headworks/capture-contract";
import { api } from "../../api.ts";
import { rewritesQuery } from "../../queries.ts";
import { isKept } from "../../rules/stored-draft.ts";
import { inOrder } from "../../rules/rule-order.ts";
import shared from "../../rules/rule-parts.module.css";
import { ListWaiting, RuleWorkbench } from "../../rules/rule-list.tsx";
import { type RuleDraft, usePrefill } from "../../rules/rule-editor.tsx";
import { setParams, useLocation } from "../../shell/router.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Page } from "../../ui/page.tsx";
import { EmptyState, ErrorState, Spinner } from "../../ui/states.tsx";
import {
  actionWords,
  draftOfAction,
  draftOfRule,
  newRewrite,
  type RewriteDraft,
  rewriteFromEntry,
} from "./rewrite-draft.ts";
import { RewriteEditor } from "./rewrite-editor.tsx";
import { RewriteList } from "./rewrite-list.tsx";
import styles from "./rewrites.module.css";

interface Start {
  readonly key: string;
  readonly draft: RuleDraft<RewriteDraft>;
  readonly rule: RewriteRule | null;
}

function startOf(key: string, form: RewriteDraft, rule: RewriteRule | null = null): Start {
  return { key, draft: { form, condition: form.condition }, rule };
}

/** Name under which a rule's unsaved draft is kept. */
const nameOf = (key: string): string => `rewrite ${key}`;

/** Rules that modify requests and responses. */
export function RewritesView() {
  const rules = useQuery({ ...rewritesQuery, refetchInterval: 5000 });
  const { params } = useLocation();
  const [fresh, setFresh] = useState<{ readonly key: string; readonly draft: RewriteDraft } | null>(null);
  const [choosing, setChoosing] = useState(false);
  const prefill = usePrefill();
  const id = params.get("id");
  const list = inOrder(rules.data ?? []);
  const chosen = list.find((rule) => rule.id === id);
  const isLoaded = rules.data !== undefined;
  const start = useMemo((): Start | null => {
    if (prefill !== null) return startOf(prefill.id, rewriteFromEntry(prefill.request));
    if (fresh !== null) return startOf(fresh.key, fresh.draft);
    if (chosen !== undefined) return startOf(chosen.id, draftOfRule(chosen), chosen);
    // Deleted by another client during editing.
    return id !== null && isLoaded && isKept(nameOf(id)) ? startOf(id, newRewrite()) : null;
  }, [prefill, fresh, chosen, id, isLoaded]);
  const begin = (draft: RewriteDraft, key: string): void => {
    setFresh({ key, draft });
    setChoosing(false);
    setParams({ id: null, from: null }, { replace: true });
  };
  const show = (rule: RewriteRule | null): void => {
    setFresh(null);
    setParams({ id: rule?.id ?? null, from: null }, { replace: true });
  };
  const add = (
    <Button variant="primary" icon={<Plus size={14} />} onClick={() => begin(newRewrite(), "new")}>
      New rewrite
    </Button>
  );
  const page = (
    <Page
      title="Rewrites"
      description="All matching rules apply, from top to bottom. Drag to reorder."
      actions={
        <>
          <Button icon={<LayoutTemplate size={14} />} onClick={() => setChoosing(true)}>
            Templates
          </Button>
          {add}
        </>
      }
    >
      <ListWaiting noun="rules" query={rules} />
      {rules.isSuccess && list.length === 0 && (
        <EmptyState icon={<Replace size={28} />} title="No rewrites">
          Add a header, send a path to another server, or replace text in responses. Start from a template, or from any
          request in Traffic.
        </EmptyState>
      )}
      {list.length > 0 && <RewriteList rules={list} chosenId={chosen?.id ?? null} onShow={show} />}
    </Page>
  );
  const editor =
    start === null ? null : (
      <RewriteEditor
        key={start.key}
        name={nameOf(start.key)}
        start={start.draft}
        rule={start.rule}
        entryId={prefill?.id ?? null}
        onClose={() => show(null)}
        onSaved={(saved) => {
          setFresh(null);
          setParams({ id: saved, from: null }, { replace: true });
        }}
      />
    );
  return (
    <>
      <RuleWorkbench list={page} editor={editor} share={0.46} />
      {choosing && (
        <TemplateGallery onChoose={(draft) => begin(draft, crypto.randomUUID())} onClose={() => setChoosing(false)} />
      )}
    </>
  );
}

function TemplateGallery({
  onChoose,
  onClose,
}: {
  readonly onChoose: (draft: RewriteDraft) => void;
  readonly onClose: () => void;
}) {
  const templates = useQuery({
    queryKey: ["rewrites", "templates"],
    queryFn: ({ signal }) => api.rewrites.listRewriteTemplates({ signal }),
    staleTime: Infinity,
  });
  return (
    <Dialog
      open
      onClose={onClose}
      title="Templates"
      size="wide"
      description="Each creates a rule that you can edit before saving."
    >
      {templates.error !== null && <ErrorState title="Could not load the templates" error={templates.error} />}
      {templates.isPending && <EmptyState icon={<Spinner />} title="" />}
      <div className={styles["gallery"]}>
        {templates.data?.map(({ name, description, template }) => (
          <button
            key={name}
            type="button"
            className={styles["template"]}
            onClick={() =>
              onChoose({
                ...newRewrite(),
                name,
                direction: template.direction,
                actions: template.rewrites.map(draftOfAction),
              })
            }
          >
            <b>{name}</b>
            <span>{description}</span>
            <span className={shared["does"]}>{template.rewrites.map(actionWords).join(" · ")}</span>
          </button>
        ))}
      </div>
    </Dialog>
  );
}
