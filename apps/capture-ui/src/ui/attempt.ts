import { errorText } from "../api.ts";
import { toast } from "./toast.tsx";

/** Runs something that may fail and says so; answers whether it worked. */
export async function attempt(what: string, action: () => Promise<unknown>): Promise<boolean> {
  try {
    await action();
    return true;
  } catch (error) {
    toast({ tone: "error", title: what, text: errorText(error) });
    return false;
  }
}
