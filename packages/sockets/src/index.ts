export { BatchedWriter } from "./batched-writer.ts";
export { cutConnection, endAndLinger, LINGER_MS } from "./cut.ts";
export { DeadlineSweep, type Timed } from "./deadlines.ts";
