import type { MockResponseConfig } from "@headworks/capture-contract";
import { compileCondition, type CompiledCondition, conditionOfResponse } from "@headworks/match-condition";
import { type PreparedResponse, prepareResponse } from "./prepared-response.ts";
import type { RequestSubject } from "./request-subject.ts";

/** The mutable state of a rule; survives recompilation. */
export interface MockProgress {
  hits: number;
  /** Index of the next response of a sequence. */
  nextIndex: number;
}

export interface Choice {
  readonly response: PreparedResponse;
  /** Null for a rule with one response. */
  readonly index: number | null;
}

export interface ResponseChoice {
  readonly needsBody: boolean;
  /** `isPeek` does not advance a sequence. */
  choose(subject: RequestSubject, progress: MockProgress, random: number, isPeek: boolean): Choice;
}

/** Patterns were checked when the rule was written. */
export function compileResponseChoice(config: MockResponseConfig): ResponseChoice {
  switch (config.type) {
    case "single": {
      const response = prepareResponse(config.response);
      return { needsBody: response.needsBody, choose: () => ({ response, index: null }) };
    }
    case "sequence":
      return compileSequence(config.responses.map(prepareResponse), config.cycle ?? true);
    case "probabilistic":
      return compileLottery(
        config.responses.map(({ response }) => prepareResponse(response)),
        config.responses.map(({ weight }) => weight),
      );
    case "conditional":
      return compileConditional(
        config.conditions.map(({ condition, response }) => ({
          condition: compileCondition(conditionOfResponse(condition)),
          response: prepareResponse(response),
        })),
        prepareResponse(config.default_response),
      );
  }
}

function compileSequence(responses: readonly PreparedResponse[], isCycle: boolean): ResponseChoice {
  const last = responses.length - 1;
  return {
    needsBody: responses.some((response) => response.needsBody),
    choose: (_subject, progress, _random, isPeek) => {
      const index = Math.min(progress.nextIndex, last);
      if (!isPeek) progress.nextIndex = index < last ? index + 1 : isCycle ? 0 : last;
      return { response: responses[index] as PreparedResponse, index };
    },
  };
}

function compileLottery(responses: readonly PreparedResponse[], weights: readonly number[]): ResponseChoice {
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return {
    needsBody: responses.some((response) => response.needsBody),
    choose: (_subject, _progress, random) => {
      let rest = random * sum;
      let index = weights.findIndex((weight) => (rest -= weight) < 0);
      if (index === -1) index = responses.length - 1;
      return { response: responses[index] as PreparedResponse, index };
    },
  };
}

function compileConditional(
  cases: readonly { readonly condition: CompiledCondition; readonly response: PreparedResponse }[],
  otherwise: PreparedResponse,
): ResponseChoice {
  return {
    needsBody:
      otherwise.needsBody || cases.some(({ condition, response }) => condition.atRequest.request || response.needsBody),
    choose: (subject) => {
      const index = cases.findIndex(({ condition }) => condition.matches(subject));
      return { response: cases[index]?.response ?? otherwise, index: index === -1 ? cases.length : index };
    },
  };
}
