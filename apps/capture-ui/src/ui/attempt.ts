import { errorText } from "../api.ts";
import { toast } from "./toast.tsx";

/** Runs an action and reports a failure as a toast; returns whether it succeeded. */
export async function attempt(what: string, action: () => Promise<unknown>): Promise<boolean> {
  try {
    await action();
    return true;
  } catch (error) {
    toast({ tone: "error", title: what, text: errorText(error) });
    return false;
  }
}
