/** RFC 6455, section 11.8. */
export const OPCODES = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

export type OpcodeName = keyof typeof OPCODES;

const NAMES: readonly (OpcodeName | undefined)[] = [
  "continuation",
  "text",
  "binary",
  undefined,
  undefined,
  undefined,
  undefined,
  undefined,
  "close",
  "ping",
  "pong",
];

/** The name of a defined opcode; undefined for reserved ones. */
export function opcodeName(opcode: number): OpcodeName | undefined {
  return NAMES[opcode];
}

/** Close, ping, pong, and the reserved ones beside them. */
export function isControl(opcode: number): boolean {
  return opcode >= 8;
}
