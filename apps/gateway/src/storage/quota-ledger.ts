import type { BudgetCharge, BudgetName, BudgetWindow, ChargeResult } from "./state-store.ts";
import { counterKey, type GroupMessage, type GroupOutcome } from "./store-messages.ts";

/** Maximum value of a counter. */
const MAX_COUNT = 2n ** 64n - 1n;

/** A consumer's budget in one window: the durable value and the units in flight and being collected. */
class QuotaCounter {
  readonly #key: bigint;
  readonly #windowStart: bigint;
  /** Seconds since 1970. */
  readonly windowStartS: number;
  #durable: bigint | undefined;
  /** A load was requested. */
  isLoadRequested = false;
  /** The durable value, with units of the group in flight and the one being collected. */
  #used = 0n;
  #gathered = 0;
  #sent = 0;
  /** Corrections by operators in the group being collected and the one in flight. */
  #gatheredShift = 0n;
  #sentShift = 0n;
  /** It is part of the group being collected. */
  isGathered = false;

  constructor(consumerId: number, budget: BudgetName, windowStartS: number) {
    this.#key = counterKey(consumerId, budget);
    this.#windowStart = BigInt(windowStartS);
    this.windowStartS = windowStartS;
  }

  /** The durable value; undefined until loaded. */
  get durable(): bigint | undefined {
    return this.#durable;
  }

  get isFull(): boolean {
    return this.#used === MAX_COUNT;
  }

  /** Parts of it are not durable yet; a reload would lose them. */
  get isMoving(): boolean {
    return this.isGathered || this.#sent > 0 || this.#sentShift !== 0n;
  }

  isUsedUp(limit: bigint): boolean {
    return this.#used >= limit;
  }

  /** True if a unit is available whatever the outcome of the group in flight. */
  hasRoom(limit: bigint): boolean {
    if (this.#used >= limit) return false;
    // Units freed by a correction in flight are not available before its commit.
    return this.#sentShift >= 0n || this.#used - this.#sentShift < limit;
  }

  take(): void {
    this.#used += 1n;
    this.#gathered += 1;
  }

  /** Applies a manual correction, clamped to the range. */
  shift(delta: bigint): void {
    const next = withinCounter(this.#used + delta);
    this.#gatheredShift += next - this.#used;
    this.#used = next;
  }

  loaded(durable: bigint): void {
    this.#durable = durable;
    this.#used = durable;
  }

  /**
   * Moves collected units into flight: writes its row of a {@link import("./store-messages.ts").GroupMessage}'s
   * `writes`.
   */
  writeTo(rows: BigInt64Array, index: number): void {
    rows[index * 3] = this.#key;
    rows[index * 3 + 1] = this.#windowStart;
    rows[index * 3 + 2] = this.#used;
    this.#sent = this.#gathered;
    this.#gathered = 0;
    this.#sentShift = this.#gatheredShift;
    this.#gatheredShift = 0n;
    this.isGathered = false;
  }

  /** Writes its row of `loads`. */
  writeLoadTo(rows: BigInt64Array, index: number): void {
    rows[index * 2] = this.#key;
    rows[index * 2 + 1] = this.#windowStart;
  }

  /** The group in flight was committed. */
  settle(): void {
    this.#durable = (this.#durable ?? 0n) + BigInt(this.#sent) + this.#sentShift;
    this.#sent = 0;
    this.#sentShift = 0n;
  }

  /** The group in flight failed. Collected units stay, clamped to the range. */
  takeBack(): void {
    const used = this.#used - BigInt(this.#sent) - this.#sentShift;
    this.#used = withinCounter(used);
    this.#gatheredShift += this.#used - used;
    this.#sent = 0;
    this.#sentShift = 0n;
  }

  /** Discards collected units. */
  dropGathered(): void {
    this.#used -= BigInt(this.#gathered) + this.#gatheredShift;
    this.#gathered = 0;
    this.#gatheredShift = 0n;
    this.isGathered = false;
  }
}

function withinCounter(used: bigint): bigint {
  return used < 0n ? 0n : used > MAX_COUNT ? MAX_COUNT : used;
}

/** Two, so that a clock may oscillate around a boundary. */
const REMEMBERED_WINDOWS = 2;

/** A consumer's row id and the counters of its latest windows. */
class ConsumerAccount {
  readonly name: string;
  /** Undefined until its row exists. */
  id: number | undefined;
  readonly #daily: QuotaCounter[] = [];
  readonly #monthly: QuotaCounter[] = [];

  constructor(name: string) {
    this.name = name;
  }

  /** The counter of a window; `id` is the account's row. `mayEvict` allows evicting counters of past windows. */
  counter(id: number, { budget, windowStartS }: BudgetWindow, mayEvict: boolean): QuotaCounter {
    const counters = budget === "daily" ? this.#daily : this.#monthly;
    const first = counters[0];
    if (first !== undefined && first.windowStartS === windowStartS) return first;
    const index = counters.findIndex((counter) => counter.windowStartS === windowStartS);
    if (index > 0) {
      const [found] = counters.splice(index, 1);
      if (found !== undefined) {
        counters.unshift(found);
        return found;
      }
    }
    const counter = new QuotaCounter(id, budget, windowStartS);
    counters.unshift(counter);
    if (mayEvict) forgetOld(counters);
    return counter;
  }

  /** Invalidates values read from the disk. */
  forgetAll(): void {
    this.#daily.length = 0;
    this.#monthly.length = 0;
  }
}

interface LedgerHost {
  /** Sends a group to the thread, followed by `settled` or `lost`. At most one is in flight. */
  send(group: GroupMessage): void;
  nowMs(): number;
  /** Schedules `flush` once, after other pending events. */
  soon(flush: () => void): void;
}

interface Deferred {
  readonly account: ConsumerAccount;
  readonly budgets: readonly BudgetCharge[];
  readonly enforce: boolean;
  readonly resolve: (result: ChargeResult | Promise<ChargeResult>) => void;
}

interface Adjustment {
  readonly account: ConsumerAccount;
  readonly window: BudgetWindow;
  readonly delta: bigint;
  readonly resolve: (result: ChargeResult | Promise<ChargeResult>) => void;
}

interface Sync {
  readonly accounts: readonly ConsumerAccount[];
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/** All charges of a group share one promise, resolved by one commit. */
interface Gathering {
  readonly counters: QuotaCounter[];
  readonly promise: Promise<ChargeResult>;
  readonly resolve: (result: ChargeResult) => void;
}

interface Sent {
  readonly counters: readonly QuotaCounter[];
  readonly loads: readonly QuotaCounter[];
  readonly accounts: readonly ConsumerAccount[];
  readonly resolve: ((result: ChargeResult) => void) | undefined;
}

const NONE: readonly BudgetName[] = [];
const CHARGED: ChargeResult = { outcome: "charged", over: NONE };
const UNSYNCED: ChargeResult = { outcome: "unsynced" };

/**
 * All counters in memory, and the groups that persist their changes. Only durable values refuse a request: if the last
 * units are in flight, the next charge waits for their outcome.
 */
export class QuotaLedger {
  readonly #host: LedgerHost;
  readonly #accounts = new Map<string, ConsumerAccount>();
  #gathering: Gathering | undefined;
  #sent: Sent | undefined;
  #deferred: Deferred[] = [];
  #adjustments: Adjustment[] = [];
  #syncs: Sync[] = [];
  #toLoad: QuotaCounter[] = [];
  readonly #withoutRow = new Set<ConsumerAccount>();
  #isFlushRequested = false;
  #charges = 0;
  /** Reason to fail charges immediately. */
  #blocked: string | undefined;

  constructor(host: LedgerHost) {
    this.#host = host;
  }

  get charges(): number {
    return this.#charges;
  }

  /** See {@link import("./state-store.ts").QuotaStore.charge}. */
  charge(name: string, budgets: readonly BudgetCharge[], enforce: boolean): ChargeResult | Promise<ChargeResult> {
    if (this.#blocked !== undefined) return { outcome: "failed", error: this.#blocked };
    const account = this.#accounts.get(name);
    if (account === undefined) return UNSYNCED;
    this.#charges += 1;
    const result = this.#tryCharge(account, budgets, enforce);
    if (result !== undefined) return result;
    const { promise, resolve } = Promise.withResolvers<ChargeResult>();
    this.#deferred.push({ account, budgets, enforce, resolve });
    this.#requestFlush();
    return promise;
  }

  /** See {@link import("./state-store.ts").QuotaStore.syncConsumers}. */
  async sync(names: readonly string[]): Promise<void> {
    const accounts = names.map((name) => this.#accountOf(name)).filter((account) => account.id === undefined);
    if (accounts.length === 0) return;
    if (this.#blocked !== undefined) throw new Error(this.#blocked);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#syncs.push({ accounts, resolve, reject });
    this.#requestFlush();
    await promise;
  }

  /** See {@link import("./state-store.ts").QuotaStore.adjust}. */
  async adjust(name: string, window: BudgetWindow, delta: bigint): Promise<void> {
    if (this.#blocked !== undefined) throw new Error(this.#blocked);
    const { promise, resolve } = Promise.withResolvers<ChargeResult>();
    this.#adjustments.push({ account: this.#accountOf(name), window, delta, resolve });
    this.#tryAdjustments();
    this.#requestFlush();
    const result = await promise;
    if (result.outcome === "failed") throw new Error(result.error);
  }

  #tryAdjustments(): void {
    this.#adjustments = this.#adjustments.filter((adjustment) => {
      const result = this.#tryAdjust(adjustment);
      if (result !== undefined) adjustment.resolve(result);
      return result === undefined;
    });
  }

  /** Undefined: the counter is not loaded yet. */
  #tryAdjust({ account, window, delta }: Adjustment): Promise<ChargeResult> | undefined {
    if (account.id === undefined) return undefined;
    const counter = this.#counterOf(account, account.id, window);
    if (counter.durable === undefined) {
      this.#requestLoad(counter);
      return undefined;
    }
    counter.shift(delta);
    const group = (this.#gathering ??= newGathering());
    gather(counter, group);
    this.#requestFlush();
    return group.promise;
  }

  #accountOf(name: string): ConsumerAccount {
    const known = this.#accounts.get(name);
    if (known !== undefined) return known;
    const account = new ConsumerAccount(name);
    this.#accounts.set(name, account);
    this.#withoutRow.add(account);
    return account;
  }

  /** Undefined: depends on counters not loaded or in flight. */
  #tryCharge(
    account: ConsumerAccount,
    budgets: readonly BudgetCharge[],
    enforce: boolean,
  ): ChargeResult | Promise<ChargeResult> | undefined {
    if (account.id === undefined) return undefined;
    let exhausted: BudgetName[] | undefined;
    let isUncertain = false;
    for (const charge of budgets) {
      const counter = this.#counterOf(account, account.id, charge);
      if (counter.durable === undefined) {
        isUncertain = true;
        this.#requestLoad(counter);
      } else if (!enforce || counter.hasRoom(charge.limit)) continue;
      else if (counter.durable >= charge.limit) (exhausted ??= []).push(charge.budget);
      else isUncertain = true;
    }
    if (isUncertain) return undefined;
    if (exhausted !== undefined) return { outcome: "exhausted", budgets: exhausted };
    return this.#take(account, account.id, budgets, enforce);
  }

  #take(
    account: ConsumerAccount,
    id: number,
    budgets: readonly BudgetCharge[],
    enforce: boolean,
  ): Promise<ChargeResult> {
    const group = (this.#gathering ??= newGathering());
    let over: BudgetName[] | undefined;
    for (const charge of budgets) {
      const counter = this.#counterOf(account, id, charge);
      if (!enforce && counter.isUsedUp(charge.limit)) (over ??= []).push(charge.budget);
      // Reached in dry runs only.
      if (counter.isFull) continue;
      counter.take();
      gather(counter, group);
    }
    this.#requestFlush();
    if (over === undefined) return group.promise;
    const beyond: ChargeResult = { outcome: "charged", over };
    return group.promise.then((result) => (result === CHARGED ? beyond : result));
  }

  #counterOf(account: ConsumerAccount, id: number, window: BudgetWindow): QuotaCounter {
    // No eviction while charges are deferred, or three of them could evict each other's windows forever.
    const mayEvict = this.#deferred.length === 0 && this.#adjustments.length === 0;
    return account.counter(id, window, mayEvict);
  }

  #requestLoad(counter: QuotaCounter): void {
    if (counter.isLoadRequested) return;
    counter.isLoadRequested = true;
    this.#toLoad.push(counter);
  }

  #requestFlush(): void {
    if (this.#isFlushRequested || this.#sent !== undefined) return;
    this.#isFlushRequested = true;
    this.#host.soon(() => {
      this.#isFlushRequested = false;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.#sent !== undefined || this.#blocked !== undefined) return;
    const gathering = this.#gathering;
    const counters = gathering?.counters ?? [];
    const loads = this.#toLoad;
    const isRowAwaited = this.#syncs.length > 0 || this.#deferred.length > 0 || this.#adjustments.length > 0;
    if (gathering === undefined && loads.length === 0 && !(isRowAwaited && this.#withoutRow.size > 0)) return;
    const accounts = [...this.#withoutRow];
    this.#gathering = undefined;
    this.#toLoad = [];
    this.#sent = { counters, loads, accounts, resolve: gathering?.resolve };
    this.#host.send({
      kind: "group",
      nowMs: this.#host.nowMs(),
      writes: counters.length === 0 ? undefined : writesOf(counters),
      loads: loads.length === 0 ? undefined : loadsOf(loads),
      names: accounts.length === 0 ? undefined : accounts.map((account) => account.name),
    });
  }

  /** The group in flight was committed or rolled back. */
  settled(outcome: GroupOutcome): void {
    const sent = this.#sent;
    if (sent === undefined) return;
    this.#sent = undefined;
    this.#blocked = undefined;
    if (outcome.error === undefined) this.#committed(sent, outcome);
    else this.#rolledBack(sent, outcome.error);
    this.#requestFlush();
  }

  #committed(sent: Sent, outcome: GroupOutcome): void {
    for (const counter of sent.counters) counter.settle();
    for (const [index, counter] of sent.loads.entries()) counter.loaded(outcome.loaded?.[index] ?? 0n);
    for (const [index, account] of sent.accounts.entries()) {
      account.id = outcome.ids?.[index];
      this.#withoutRow.delete(account);
    }
    sent.resolve?.(CHARGED);
    this.#syncs = this.#syncs.filter((sync) => {
      if (sync.accounts.some((account) => account.id === undefined)) return true;
      sync.resolve();
      return false;
    });
    this.#tryAdjustments();
    this.#deferred = this.#deferred.filter((waiter) => {
      const result = this.#tryCharge(waiter.account, waiter.budgets, waiter.enforce);
      if (result !== undefined) waiter.resolve(result);
      return result === undefined;
    });
  }

  #rolledBack(sent: Sent, error: string): void {
    for (const counter of sent.counters) counter.takeBack();
    for (const counter of sent.loads) counter.isLoadRequested = false;
    sent.resolve?.({ outcome: "failed", error });
    this.#failWaiting(error);
  }

  #failWaiting(error: string): void {
    const deferred = this.#deferred;
    this.#deferred = [];
    for (const waiter of deferred) waiter.resolve({ outcome: "failed", error });
    const adjustments = this.#adjustments;
    this.#adjustments = [];
    for (const waiter of adjustments) waiter.resolve({ outcome: "failed", error });
    const syncs = this.#syncs;
    this.#syncs = [];
    for (const sync of syncs) sync.reject(new Error(error));
  }

  /** Fails waiting and new charges until the group in flight settles; its units stay reserved. */
  failCharges(error: string): void {
    this.#blocked = error;
    this.#sent?.resolve?.({ outcome: "failed", error });
    const gathering = this.#gathering;
    this.#gathering = undefined;
    for (const counter of gathering?.counters ?? []) counter.dropGathered();
    gathering?.resolve({ outcome: "failed", error });
    this.#failWaiting(error);
  }

  /** The thread died, and the durable state is unknown. Charges fail until `resumed`. */
  lost(error: string): void {
    this.failCharges(error);
    this.#sent = undefined;
    this.#toLoad = [];
    for (const account of this.#accounts.values()) account.forgetAll();
  }

  /** A new thread is running. */
  resumed(): void {
    this.#blocked = undefined;
    this.#requestFlush();
  }

  /** True if nothing is in flight or queued. */
  get isIdle(): boolean {
    return (
      this.#sent === undefined &&
      this.#gathering === undefined &&
      this.#deferred.length === 0 &&
      this.#adjustments.length === 0 &&
      this.#syncs.length === 0
    );
  }
}

function newGathering(): Gathering {
  const { promise, resolve } = Promise.withResolvers<ChargeResult>();
  return { counters: [], promise, resolve };
}

function gather(counter: QuotaCounter, group: Gathering): void {
  if (counter.isGathered) return;
  counter.isGathered = true;
  group.counters.push(counter);
}

function writesOf(counters: readonly QuotaCounter[]): BigInt64Array {
  const rows = new BigInt64Array(counters.length * 3);
  for (const [index, counter] of counters.entries()) counter.writeTo(rows, index);
  return rows;
}

function loadsOf(counters: readonly QuotaCounter[]): BigInt64Array {
  const rows = new BigInt64Array(counters.length * 2);
  for (const [index, counter] of counters.entries()) counter.writeLoadTo(rows, index);
  return rows;
}

function forgetOld(counters: QuotaCounter[]): void {
  for (let last = counters.at(-1); counters.length > REMEMBERED_WINDOWS; last = counters.at(-1)) {
    if (last === undefined || last.isMoving) return;
    counters.pop();
  }
}
