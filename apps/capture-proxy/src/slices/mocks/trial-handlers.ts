import type { mocksOperations, MockSample } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import type { Explanation } from "@headworks/match-condition";
import type { Static } from "typebox";
import { notFound, validationError } from "#api/api-error.ts";
import type { CaptureStore } from "#storage/capture-store.ts";
import type { MockCompiler, MockSet } from "./mocks.compile.ts";
import type { RequestSubject } from "./request-subject.ts";
import type { RuleBook } from "./rule-book.ts";
import { sampleSubject } from "./sample-request.ts";

type TrialHandlers = Pick<Handlers<typeof mocksOperations>, "previewMock" | "testMock">;

/** Handlers of the operations that try rules on a request without answering one. */
export function trialHandlers(parts: {
  readonly book: RuleBook;
  readonly compiler: MockCompiler;
  readonly rules: () => MockSet;
  readonly captured: CaptureStore;
  /** Between 0 and 1. */
  readonly random: () => number;
}): TrialHandlers {
  const { book, compiler, captured } = parts;
  return {
    previewMock: async ({ body }) => {
      const subject = await subjectOf(body, captured);
      const found = parts.rules().find(subject, book.clock.now());
      if (found === undefined || found === "needs-body") {
        return { status: 200, body: { matched: false, message: "No enabled rule matches this request" } };
      }
      const { rule, choice, progress } = found;
      const { response, index } = choice.choose(subject, progress, parts.random(), true);
      return {
        status: 200,
        body: {
          matched: true,
          rule_id: rule.id,
          rule_name: rule.name,
          response: writable(response.response),
          response_index: index,
        },
      };
    },
    testMock: async ({ params, body }) => {
      const rule = book.find(params.id);
      const subject = await subjectOf(body, captured);
      const explanation = compiler.one(rule).condition.explain(subject);
      return {
        status: 200,
        body: {
          matches: explanation.outcome === "holds",
          rule_id: rule.id,
          rule_name: rule.name,
          explanation: [...sentences(explanation, "")],
        },
      };
    },
  };
}

/** Wire types are mutable; answers are not. */
function writable<T extends { readonly headers: object }>(response: T) {
  return { ...response, headers: { ...response.headers } as Record<string, string | string[]> };
}

async function subjectOf(body: Static<typeof MockSample>, captured: CaptureStore): Promise<RequestSubject> {
  if ((body.request === undefined) === (body.entry_id === undefined)) {
    throw validationError([{ path: "body/request", message: "give either request or entry_id" }]);
  }
  if (body.request !== undefined) return await sampleSubject(body.request, "body/request");
  const entry = await captured.getEntry(body.entry_id ?? "", { includeBodies: true, decompressed: false });
  return entry === undefined ? notFound("entry") : await sampleSubject(entry.request, "body/entry");
}

/** One line for each part, indented by how deep it is. */
function* sentences(explanation: Explanation, indent: string): Generator<string> {
  yield indent + explanation.text;
  for (const part of explanation.parts) yield* sentences(part, `${indent}  `);
}
