export { AnswerEnd } from "./answer-end.ts";
export { BatchedWriter } from "./batched-writer.ts";
export { ConnectionWindow, type WindowLimits } from "./connection-window.ts";
export { cutConnection, endAndLinger, LINGER_MS, type ByteSocket } from "./cut.ts";
export { noteGarbage } from "./buffer-garbage.ts";
export { DeadlineSweep, type Timed } from "./deadlines.ts";
export { Queue, type QueuePlace } from "./queue.ts";
export { UnreadBody } from "./unread-body.ts";
export { NOWHERE, Roster, type Rostered } from "./roster.ts";
