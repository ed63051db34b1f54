export {
  createSandbox,
  type GuestFault,
  type GuestOutcome,
  type GuestProgram,
  type GuestValue,
  type Sandbox,
  type SandboxOptions,
  type SourceFacts,
} from "./sandbox.ts";
