interface TextSchema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly anyOf?: readonly TextSchema[];
  readonly minimum?: number;
  readonly maximum?: number;
}

/** The value that a text from the environment or the command line stands for, or a sentence saying what is accepted. */
export type ParsedText = { readonly value: unknown } | { readonly problem: string };

const TRUE = new Set(["true", "1", "yes", "on"]);
const FALSE = new Set(["false", "0", "no", "off"]);

/**
 * Reads text by schema: booleans as true/false, 1/0, yes/no, on/off; lists with commas; an empty text or `null` clears
 * what may be null. Lengths are not checked here.
 */
export function parseSettingText(schema: unknown, text: string): ParsedText {
  const facts = schema as TextSchema;
  if (facts.anyOf) return parseNullable(facts.anyOf, text);
  switch (facts.type) {
    case "boolean":
      return parseBoolean(text);
    case "integer":
      return parseInteger(facts, text.trim());
    case "array":
      return {
        value: text
          .split(",")
          .map((part) => part.trim())
          .filter((part) => part !== ""),
      };
    case "string":
      if (!facts.enum || facts.enum.includes(text)) return { value: text };
      return { problem: `must be one of ${facts.enum.join(", ")}; it is ${shown(text)}` };
    default:
      throw new TypeError(`a setting of type ${String(facts.type)} cannot be read from text`);
  }
}

function parseInteger({ minimum, maximum }: TextSchema, text: string): ParsedText {
  const value = /^-?[0-9]{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= (minimum ?? value) && value <= (maximum ?? value)) return { value };
  const from = minimum === undefined ? "" : ` from ${minimum} ${maximum === undefined ? "on" : `to ${maximum}`}`;
  return { problem: `must be a whole number${from}; it is ${shown(text)}` };
}

/** As it was given, cut where it is long. Only for values that hold no secret. */
function shown(text: string): string {
  return JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}…` : text);
}

function parseBoolean(text: string): ParsedText {
  const word = text.trim().toLowerCase();
  if (TRUE.has(word)) return { value: true };
  if (FALSE.has(word)) return { value: false };
  return { problem: `must be true or false; it is ${shown(text)}` };
}

function parseNullable(branches: readonly TextSchema[], text: string): ParsedText {
  if (text === "" || text === "null") return { value: null };
  const branch = branches.find((candidate) => candidate.type !== "null");
  return parseSettingText(branch, text);
}
