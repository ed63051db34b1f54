import { useQuery } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import type { MockRule } from "@headworks/capture-contract";
import { api } from "../../api.ts";
import { queryClient } from "../../queries.ts";
import { conditionSentence } from "../../rules/condition-draft.ts";
import { RuleRow, RuleRows, useRuleList } from "../../rules/rule-list.tsx";
import { attempt } from "../../ui/toast.tsx";
import { Button } from "../../ui/button.tsx";
import { isolatedName } from "../../ui/format.ts";
import { Tag } from "../../ui/tag.tsx";
import styles from "./mocks.module.css";
import { hitBins } from "./hit-bins.ts";

const SPAN_MS = 30 * 60_000;
const BINS = 20;

function useHitBins(): ReadonlyMap<string, readonly number[]> {
  const hits = useQuery({
    queryKey: ["mocks", "hits"],
    queryFn: async ({ signal }) => ({
      hits: await api.mocks.listMockHits({ query: { limit: 1000 }, signal }),
      nowMs: Date.now(),
    }),
    refetchInterval: 5000,
  });
  const { data } = hits;
  return useMemo(
    () => (data === undefined ? new Map() : hitBins(data.hits, { nowMs: data.nowMs, spanMs: SPAN_MS, count: BINS })),
    [data],
  );
}

function bodyOf({ name, description, tags, collection_id, condition, response_config, ...rest }: MockRule) {
  const { enabled, priority, expiration, response_schema } = rest;
  return {
    name,
    description,
    tags,
    collection_id,
    condition,
    response_config,
    enabled,
    priority,
    expiration,
    response_schema,
  };
}

/** Short summary of a rule's response. */
function responseWords({ response_config: config }: MockRule): string {
  switch (config.type) {
    case "single":
      return `${config.response.status_code}${config.response.delay_ms === null ? "" : ` after ${config.response.delay_ms} ms`}`;
    case "sequence":
      return `${config.responses.length} responses in sequence`;
    case "probabilistic":
      return config.responses.map(({ weight, response }) => `${response.status_code} × ${weight}`).join(", ");
    case "conditional":
      return `${config.conditions.length + 1} conditional responses`;
  }
}

export function MockList({
  rules,
  chosenId,
  onShow,
}: {
  readonly rules: readonly MockRule[];
  readonly chosenId: string | null;
  readonly onShow: (id: string | null) => void;
}) {
  const bins = useHitBins();
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set());
  const chosen = rules.filter((rule) => ticked.has(rule.id)).map((rule) => rule.id);
  const tick = (ids: readonly string[], isTicked: boolean): void =>
    setTicked(isTicked ? new Set([...ticked, ...ids]) : ticked.difference(new Set(ids)));
  const actions = useRuleList<MockRule>({
    topic: "mocks",
    toggle: (rule, enabled) => api.mocks.toggleMock({ params: { id: rule.id }, body: { enabled } }),
    remove: async (rule) => {
      await api.mocks.deleteMock({ params: { id: rule.id } });
      if (rule.id === chosenId) onShow(null);
    },
    restore: (rule) => api.mocks.createMock({ body: bodyOf(rule) }),
    duplicate: (rule) => api.mocks.duplicateMock({ params: { id: rule.id } }),
  });
  return (
    <>
      <ManyMocks rules={rules} chosen={chosen} onTick={tick} />
      <RuleRows label="Mocks">
        {rules.map((rule) => (
          <RuleRow
            key={rule.id}
            rule={rule}
            isChosen={rule.id === chosenId}
            lines={[conditionSentence(rule.condition), responseWords(rule)]}
            mark={rule.expired && <Tag tone="warning">expired</Tag>}
            before={
              <input
                type="checkbox"
                aria-label={`Select ${isolatedName(rule.name)}`}
                checked={ticked.has(rule.id)}
                onChange={(event) => tick([rule.id], event.target.checked)}
              />
            }
            after={<Sparkline bins={bins.get(rule.id)} />}
            hits={{ count: rule.hit_count, title: "Requests served by this mock" }}
            onToggle={(enabled) => actions.toggle(rule, enabled)}
            onShow={() => onShow(rule.id)}
            menu={() => [
              { kind: "item", label: "Duplicate", onSelect: () => actions.duplicate(rule) },
              { kind: "item", label: "Delete", danger: true, onSelect: () => actions.remove(rule) },
            ]}
          />
        ))}
      </RuleRows>
    </>
  );
}

/** Selects all mocks, and switches the selected ones together. */
function ManyMocks({
  rules,
  chosen,
  onTick,
}: {
  readonly rules: readonly MockRule[];
  readonly chosen: readonly string[];
  readonly onTick: (ids: readonly string[], isTicked: boolean) => void;
}) {
  const ids = rules.map((rule) => rule.id);
  const isAll = chosen.length === ids.length;
  const toggle = async (enabled: boolean): Promise<void> => {
    await attempt("Could not switch the mocks", () =>
      api.mocks.batchToggleMocks({ body: { ids: [...chosen], enabled } }),
    );
    await queryClient.invalidateQueries({ queryKey: ["mocks"] });
  };
  return (
    <div className={styles["many"]} role="group" aria-label="Bulk actions">
      <label className={styles["all"]}>
        <input
          type="checkbox"
          ref={(box) => {
            if (box !== null) box.indeterminate = chosen.length > 0 && !isAll;
          }}
          checked={isAll}
          onChange={() => onTick(ids, !isAll)}
        />
        {chosen.length === 0 ? "Select all" : `${chosen.length} of ${ids.length} selected`}
      </label>
      {chosen.length > 0 && (
        <>
          <Button onClick={() => void toggle(true)}>Enable</Button>
          <Button onClick={() => void toggle(false)}>Disable</Button>
        </>
      )}
    </div>
  );
}

function Sparkline({ bins }: { readonly bins: readonly number[] | undefined }) {
  if (bins === undefined) return <span className={styles["spark"]} />;
  const max = Math.max(1, ...bins);
  const total = bins.reduce((sum, bin) => sum + bin, 0);
  return (
    <svg
      className={styles["spark"]}
      viewBox={`0 0 ${BINS * 3} 20`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${total} ${total === 1 ? "hit" : "hits"} in the last 30 minutes`}
    >
      {bins.map((bin, index) => (
        <rect
          key={index}
          x={index * 3}
          width={2}
          y={20 - (bin === 0 ? 1 : Math.max(2, (bin / max) * 20))}
          height={bin === 0 ? 1 : Math.max(2, (bin / max) * 20)}
          fill="currentColor"
          opacity={bin === 0 ? 0.25 : 1}
        />
      ))}
    </svg>
  );
}
