import type { Condition } from "@headworks/capture-contract";
import { COMPARISON_LABELS, draftOfCondition, SUBJECTS } from "./condition-draft.ts";
import type { ConditionDraft, GroupDraft, TestDraft } from "./condition-draft.ts";

/** A condition in words for lists: `GET, host api.example.com, path begins with /orders`. */
export function conditionSentence(condition: Condition): string {
  const draft = draftOfCondition(condition);
  return draft.items.length === 0 ? "Everything" : groupWords(draft);
}

function groupWords(group: GroupDraft): string {
  return group.items.map(words).join(group.op === "and" ? ", " : " or ");
}

function words(draft: ConditionDraft): string {
  if (draft.kind === "group") {
    const inner = draft.items.length === 0 ? "everything" : groupWords(draft);
    if (draft.not) return `not (${inner})`;
    return draft.items.length > 1 ? `(${inner})` : inner;
  }
  const text = testWords(draft);
  return draft.not ? `not ${text}` : text;
}

const SIDES = { request: "request ", response: "response " } as const;

function testWords({ subject, comparison, name, value, side }: TestDraft): string {
  // The method is self-explanatory and needs no label.
  if (subject === "method") return value.toUpperCase();
  const label = SUBJECTS[subject].label;
  const about =
    `${side === null ? label.charAt(0).toLowerCase() + label.slice(1) : SIDES[side] + label.toLowerCase()}`.replace(
      /^(?:uRL|jSON|graphQL)/u,
      (word) => ({ uRL: "URL", jSON: "JSON" })[word] ?? "GraphQL",
    );
  const named = name === "" ? about : `${about} ${name}`;
  if (comparison === "there") return named;
  const verb =
    comparison === "is" || comparison === "equals" ? (name === "" ? "" : " =") : ` ${COMPARISON_LABELS[comparison]}`;
  return `${named}${verb.replace(" pattern", "")} ${value === "" ? "nothing" : value}`;
}
