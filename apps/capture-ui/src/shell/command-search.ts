export interface Command {
  readonly id: string;
  readonly label: string;
  readonly words?: string;
  readonly keys?: string;
  readonly run: () => void;
}

/** Match score of a text: each word must occur; word beginnings score highest. 0 is no match. */
export function matchScore(typed: string, label: string, words = ""): number {
  const wanted = typed.toLowerCase().split(/\s+/u).filter(Boolean);
  const name = label.toLowerCase();
  const rest = words.toLowerCase();
  let score = 1;
  for (const word of wanted) {
    if (name.startsWith(word)) score += 4;
    else if (name.includes(` ${word}`)) score += 3;
    else if (name.includes(word)) score += 2;
    else if (rest.includes(word)) score += 1;
    else return 0;
  }
  return score;
}

/** Matching commands, best first, in stable order. */
export function findCommands(typed: string, commands: readonly Command[]): readonly Command[] {
  return commands
    .map((command) => ({ command, score: matchScore(typed, command.label, command.words) }))
    .filter(({ score }) => score > 0)
    .toSorted((left, right) => right.score - left.score)
    .map(({ command }) => command);
}
