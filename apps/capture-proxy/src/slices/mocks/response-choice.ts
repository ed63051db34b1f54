// Tested by mocks.compile.test.ts
import type { MockResponseConfig } from "@headworks/capture-contract";
import { compileCondition, conditionOfAnswer } from "@headworks/match-condition";
import type { CompiledCondition } from "@headworks/match-condition";
import { prepareAnswer } from "./answer.ts";
import type { PreparedAnswer } from "./answer.ts";
import type { RequestSubject } from "./request-subject.ts";

/** Where a rule stands; it outlives every compilation. */
export interface MockProgress {
  hits: number;
  /** The answer of a sequence that comes next. */
  nextIndex: number;
}

/** The answer that was chosen, and which of several it is. */
export interface Choice {
  readonly answer: PreparedAnswer;
  /** Null for a rule with one answer. */
  readonly index: number | null;
}

/** The answers of a rule, ready to be chosen from. */
export interface ResponseChoice {
  /** The request's body may decide or be part of the answer. */
  readonly needsBody: boolean;
  /** Chooses for a request; `isPeek` leaves a sequence where it is. */
  choose(subject: RequestSubject, progress: MockProgress, random: number, isPeek: boolean): Choice;
}

/** Compiles the answers of a rule. Patterns were checked when the rule was taken in. */
export function compileResponseChoice(config: MockResponseConfig): ResponseChoice {
  switch (config.type) {
    case "single": {
      const answer = prepareAnswer(config.response);
      return { needsBody: answer.needsBody, choose: () => ({ answer, index: null }) };
    }
    case "sequence":
      return compileSequence(config.responses.map(prepareAnswer), config.cycle ?? true);
    case "probabilistic":
      return compileLottery(
        config.responses.map(({ response }) => prepareAnswer(response)),
        config.responses.map(({ weight }) => weight),
      );
    case "conditional":
      return compileConditional(
        config.conditions.map(({ condition, response }) => ({
          condition: compileCondition(conditionOfAnswer(condition)),
          answer: prepareAnswer(response),
        })),
        prepareAnswer(config.default_response),
      );
  }
}

function compileSequence(answers: readonly PreparedAnswer[], isCycle: boolean): ResponseChoice {
  const last = answers.length - 1;
  return {
    needsBody: answers.some((answer) => answer.needsBody),
    choose: (_subject, progress, _random, isPeek) => {
      const index = Math.min(progress.nextIndex, last);
      if (!isPeek) progress.nextIndex = index < last ? index + 1 : isCycle ? 0 : last;
      return { answer: answers[index] as PreparedAnswer, index };
    },
  };
}

function compileLottery(answers: readonly PreparedAnswer[], weights: readonly number[]): ResponseChoice {
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return {
    needsBody: answers.some((answer) => answer.needsBody),
    choose: (_subject, _progress, random) => {
      let rest = random * sum;
      let index = weights.findIndex((weight) => (rest -= weight) < 0);
      if (index === -1) index = answers.length - 1;
      return { answer: answers[index] as PreparedAnswer, index };
    },
  };
}

function compileConditional(
  cases: readonly { readonly condition: CompiledCondition; readonly answer: PreparedAnswer }[],
  otherwise: PreparedAnswer,
): ResponseChoice {
  return {
    needsBody:
      otherwise.needsBody || cases.some(({ condition, answer }) => condition.atRequest.request || answer.needsBody),
    choose: (subject) => {
      const index = cases.findIndex(({ condition }) => condition.matches(subject));
      return { answer: cases[index]?.answer ?? otherwise, index: index === -1 ? cases.length : index };
    },
  };
}
