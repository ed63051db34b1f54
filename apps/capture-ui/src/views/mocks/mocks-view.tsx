import { useQuery } from "@tanstack/react-query";
import { Download, Drama, FileInput, MoreHorizontal, Plus } from "lucide-react";
import { useMemo, useState } from "react";
import type { MockRule } from "@headworks/capture-contract";
import { api, ApiFailure, operations, operationUrl } from "../../api.ts";
import { mockCollectionsQuery, mocksQuery } from "../../queries.ts";
import { draftOfBytes } from "../../rules/message-draft.ts";
import { isKept } from "../../rules/stored-draft.ts";
import { inOrder } from "../../rules/rule-order.ts";
import { ListWaiting, RuleWorkbench } from "../../rules/rule-list.tsx";
import { type RuleDraft, usePrefill } from "../../rules/rule-editor.tsx";
import { setParams, useLocation } from "../../shell/router.ts";
import { Button } from "../../ui/button.tsx";
import { Menu } from "../../ui/menu.tsx";
import { Page } from "../../ui/page.tsx";
import { EmptyState, ErrorState } from "../../ui/states.tsx";
import { CollectionsNav } from "./collections-nav.tsx";
import { clearHits } from "./hits-tab.tsx";
import { ImportDialog } from "./import-dialog.tsx";
import { draftOfMock, type MockDraft, mockFromEntry, newMock } from "./mock-draft.ts";
import { MockEditor, type MockPart } from "./mock-editor.tsx";
import { MockList } from "./mock-list.tsx";
import styles from "./mocks.module.css";
import { RecordingNotice, RecordingPanel, setRecording } from "./recording-panel.tsx";
import { draftOfResponse } from "./response-draft.ts";
import { ServingNotice, ServingPanel } from "./serving-panel.tsx";

interface Start {
  readonly key: string;
  readonly draft: RuleDraft<MockDraft>;
  readonly rule: MockRule | null;
}

function startOf(key: string, form: MockDraft, rule: MockRule | null = null): Start {
  return { key, draft: { form, condition: form.name === "" && rule === null ? null : form.condition }, rule };
}

/** Name under which a mock's unsaved draft is kept. */
const nameOf = (key: string): string => `mock ${key}`;

/** Mocks: rules, collections, recording, import, and served sessions. */
export function MocksView() {
  const { params } = useLocation();
  const [fresh, setFresh] = useState<{ readonly key: string; readonly draft: MockDraft } | null>(null);
  const [importing, setImporting] = useState(false);
  const [tab, setTab] = useState<{ readonly id: string | null; readonly part: MockPart }>({ id: null, part: "rule" });
  const prefill = useMockPrefill();
  const id = params.get("id");
  const panel = params.get("panel");
  const chosen = useQuery({
    queryKey: ["mocks", "one", id],
    queryFn: ({ signal }) => api.mocks.getMock({ params: { id: id ?? "" }, signal }),
    enabled: id !== null,
    retry: false,
  });
  const begin = (draft: MockDraft, key: string): void => {
    setFresh({ key, draft });
    setParams({ id: null, from: null, panel: null }, { replace: true });
  };
  const show = (next: string | null): void => {
    setFresh(null);
    setParams({ id: next, from: null, panel: null }, { replace: true });
  };
  const isGone = chosen.error instanceof ApiFailure && chosen.error.status === 404;
  const start = useMemo((): Start | null => {
    if (prefill !== null) return startOf(prefill.key, prefill.draft);
    if (fresh !== null) return startOf(fresh.key, fresh.draft);
    if (id === null) return null;
    // Deleted by another client: an unsaved draft is kept.
    if (isGone) return isKept(nameOf(id)) ? startOf(id, newMock()) : null;
    return chosen.data === undefined ? null : startOf(id, draftOfMock(chosen.data), chosen.data);
  }, [prefill, fresh, id, isGone, chosen.data]);
  const second =
    start !== null ? (
      <MockEditor
        key={start.key}
        name={nameOf(start.key)}
        start={start.draft}
        rule={start.rule}
        part={tab.id === id ? tab.part : "rule"}
        onPart={(part) => setTab({ id, part })}
        onClose={() => show(null)}
        onSaved={show}
      />
    ) : id !== null && chosen.error !== null ? (
      <ErrorState title="Could not load the mock" error={chosen.error} />
    ) : panel === "recording" ? (
      <RecordingPanel onClose={() => show(null)} />
    ) : panel === "serving" ? (
      <ServingPanel onClose={() => show(null)} />
    ) : null;
  const first = <MocksPage onBegin={begin} onShow={show} onImport={() => setImporting(true)} />;
  return (
    <>
      <RuleWorkbench list={first} editor={second} share={0.5} />
      {importing && <ImportDialog onClose={() => setImporting(false)} />}
    </>
  );
}

/** Streamed to disk by the browser. */
function exportAll(): void {
  const link = document.createElement("a");
  link.href = operationUrl(operations.mocks.exportMocks, {});
  link.download = "weir-mocks.json";
  link.click();
}

const NONE = "none";

function MocksPage({
  onBegin,
  onShow,
  onImport,
}: {
  readonly onBegin: (draft: MockDraft, key: string) => void;
  readonly onShow: (id: string | null) => void;
  readonly onImport: () => void;
}) {
  const { params } = useLocation();
  const mocks = useQuery({ ...mocksQuery, refetchInterval: 5000 });
  const collections = useQuery(mockCollectionsQuery);
  const collection = params.get("collection");
  const inCollection = (rule: MockRule): boolean =>
    collection === null || (collection === NONE ? rule.collection_id === null : rule.collection_id === collection);
  const list = inOrder(mocks.data ?? []).filter(inCollection);
  const own = collection === null || collection === NONE ? null : collection;
  return (
    <div className={styles["side"]}>
      <CollectionsNav collections={collections.data ?? []} rules={mocks.data ?? []} chosen={collection} none={NONE} />
      <Page
        title="Mocks"
        description="Weir responds to these requests itself, without contacting the server. If several rules match, the lowest number wins."
        actions={
          <MockActions onBegin={(draft, key) => onBegin({ ...draft, collectionId: own }, key)} onImport={onImport} />
        }
      >
        <RecordingNotice />
        <ServingNotice />
        <ListWaiting noun="mocks" query={mocks} />
        {mocks.isSuccess && list.length === 0 && (
          <EmptyState icon={<Drama size={28} />} title="No mocks">
            Create a mock, record server responses, import HAR, OpenAPI or Postman, or start from any request in
            Traffic.
          </EmptyState>
        )}
        {list.length > 0 && <MockList rules={list} chosenId={params.get("id")} onShow={onShow} />}
      </Page>
    </div>
  );
}

function MockActions({
  onBegin,
  onImport,
}: {
  readonly onBegin: (draft: MockDraft, key: string) => void;
  readonly onImport: () => void;
}) {
  const templates = useQuery({
    queryKey: ["mocks", "templates"],
    queryFn: ({ signal }) => api.mocks.listMockTemplates({ signal }),
    staleTime: Infinity,
  });
  const fromTemplate = (name: string, template: Parameters<typeof draftOfResponse>[0]): void => {
    const draft = newMock();
    const config = { ...draft.config, responses: [draftOfResponse(template)] };
    onBegin({ ...draft, name, config }, crypto.randomUUID());
  };
  return (
    <>
      <Menu
        align="end"
        trigger={
          <Button icon={<MoreHorizontal size={14} />} aria-label="More actions">
            More
          </Button>
        }
        items={() => [
          { kind: "item", label: "Import…", icon: <FileInput size={14} />, onSelect: onImport },
          { kind: "item", label: "Export all", icon: <Download size={14} />, onSelect: exportAll },
          { kind: "separator" },
          { kind: "item", label: "Record responses", onSelect: () => void setRecording(true) },
          {
            kind: "item",
            label: "Review recorded responses",
            onSelect: () => setParams({ panel: "recording", id: null }),
          },
          { kind: "item", label: "Clear hit history…", onSelect: () => void clearHits() },
          { kind: "separator" },
          { kind: "item", label: "Serve a session…", onSelect: () => setParams({ panel: "serving", id: null }) },
          { kind: "separator" },
          { kind: "heading", label: "Templates" },
          ...(templates.data ?? []).map(({ name, description, template }) => ({
            kind: "item" as const,
            label: name,
            detail: description,
            onSelect: () => fromTemplate(name, template),
          })),
        ]}
      />
      <Button variant="primary" icon={<Plus size={14} />} onClick={() => onBegin(newMock(), "new")}>
        New mock
      </Button>
    </>
  );
}

/** A new mock from the entry given by `?from=<id>`, with the decoded response body; null without one. */
function useMockPrefill(): { readonly key: string; readonly draft: MockDraft } | null {
  const entry = usePrefill();
  const id = entry?.id ?? "";
  const body = useQuery({
    queryKey: ["entry", id, "decoded-response"],
    queryFn: async ({ signal }) => {
      const url = operationUrl(operations.traffic.getTrafficBody, {
        params: { id, side: "response" },
        query: { decoded: "true" },
      });
      const response = await fetch(url, { signal });
      return draftOfBytes(new Uint8Array(response.ok ? await response.arrayBuffer() : new ArrayBuffer(0)));
    },
    enabled: entry !== null,
    staleTime: Infinity,
  });
  const response = body.data;
  return useMemo(
    () => (entry === null || response === undefined ? null : { key: entry.id, draft: mockFromEntry(entry, response) }),
    [entry, response],
  );
}
