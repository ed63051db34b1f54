/** How many deliveries may run at once (delivery rule 6). */
export const MAX_DELIVERIES = 32;
/** How many of the places those that wait may fill: a replay to many slow targets must not crowd out new events. */
const MAX_PATIENT = 8;

/** Counts the deliveries that run, and queues those that may wait for a place. */
export class DeliveryPlaces {
  readonly #capacity: number;
  readonly #patientCapacity: number;
  readonly #waiting: (() => void)[] = [];
  #taken = 0;
  #patientTaken = 0;

  constructor(capacity: number = MAX_DELIVERIES, patientCapacity: number = MAX_PATIENT) {
    this.#capacity = capacity;
    this.#patientCapacity = patientCapacity;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Takes a place if one is free; give it back with {@link release}. */
  take(): boolean {
    if (this.#taken >= this.#capacity) return false;
    this.#taken += 1;
    return true;
  }

  /** Takes a place, waiting for one in order of arrival; give it back with {@link releasePatient}. */
  async takePatiently(): Promise<void> {
    if (this.#waiting.length > 0 || !this.#takePatient()) {
      const { promise, resolve } = Promise.withResolvers<undefined>();
      this.#waiting.push(() => resolve(undefined));
      await promise;
    }
  }

  release(): void {
    this.#taken -= 1;
    this.#admit();
  }

  releasePatient(): void {
    this.#patientTaken -= 1;
    this.release();
  }

  #takePatient(): boolean {
    if (this.#patientTaken >= this.#patientCapacity || !this.take()) return false;
    this.#patientTaken += 1;
    return true;
  }

  #admit(): void {
    while (this.#waiting.length > 0 && this.#takePatient()) this.#waiting.shift()?.();
  }
}
