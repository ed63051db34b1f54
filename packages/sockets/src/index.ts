export { BatchedWriter, PooledWriter, turnMs } from "./batched-writer.ts";
export { type ByteSocket, cutConnection, endAndLinger, Linger, LINGER_MS, readPastBrokenWrites } from "./closing.ts";
export { BufferBudget, trackExternalMemory } from "./memory.ts";
export {
  ConnectionSet,
  DeadlineSweep,
  NOT_IN_SET,
  Queue,
  type QueueEntry,
  type SetMember,
  type Timed,
} from "./connection-set.ts";
export { MinimumRate, takenBytes, type RateRule } from "./minimum-rate.ts";
export { SharedBytes, shareReadBuffer, sharedReads } from "./shared-reads.ts";
