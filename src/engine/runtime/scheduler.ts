/**
 * Who runs next. Free slots go round robin over instances, then over the instance's tasks, so that one noisy task or
 * user cannot starve the others (law 4, decisions B2). It knows nothing of agents but their names.
 */
import type { LiveTask } from "./live-task.js";

/** What the scheduler sees of a task. */
export type Schedulable = Pick<LiveTask, "instanceKey" | "busy" | "writing" | "lost" | "queued">;

interface InstanceQueue<T> {
  readonly key: string;
  readonly tasks: Queue<T>;
  running: number;
  queued: boolean;
}

export interface SchedulerLimits {
  readonly turns: number;
  readonly turnsPerInstance: number;
  readonly turnsPerTask: number;
}

/**
 * How many turns may have ended without being durable before another one starts. They share a commit, so more of them
 * make each cheaper; but agents that answer at once hold the event loop for as long as their turns take together.
 */
const MOST_UNWRITTEN = 256;

export class Scheduler<T extends Schedulable = LiveTask> {
  readonly #instances = new Map<string, InstanceQueue<T>>();
  readonly #ring = new Queue<InstanceQueue<T>>();
  readonly #limits: SchedulerLimits;
  readonly #start: (task: T) => boolean;
  readonly #idle: (task: T) => void;
  #running = 0;
  /** Turns that have ended and are not durable yet. */
  #unwritten = 0;
  /** To be pumped, or being pumped. */
  #due = false;
  #stopped = false;

  /**
   * `start` begins one turn in the task and tells whether there was one to begin. `idle` is told of a task that left
   * the queue without one: it may have ended while it stood there.
   */
  constructor(limits: SchedulerLimits, start: (task: T) => boolean, idle: (task: T) => void) {
    this.#limits = limits;
    this.#start = start;
    this.#idle = idle;
  }

  get running(): number {
    return this.#running;
  }

  /** There may be something to do in this task. Cheap to call too often. */
  offer(task: T): void {
    if (this.#stopped || task.queued || task.lost) return;
    const instance = this.#instanceOf(task);
    task.queued = true;
    instance.tasks.push(task);
    this.#enqueue(instance);
  }

  /** Takes a slot for a turn of this task. */
  occupy(task: T, agent: string): void {
    if (task.busy.has(agent)) return;
    task.busy.add(agent);
    this.#instanceOf(task).running++;
    this.#running++;
  }

  /** The turn has ended: others may have its slot, but until that is durable the agent takes no more mail. */
  giveBack(task: T, agent: string): void {
    if (!task.busy.has(agent) || task.writing.has(agent)) return;
    task.writing.add(agent);
    this.#unwritten++;
    this.#leaveSlot(task);
    this.pump();
  }

  /** The agent may take its next mail. */
  free(task: T, agent: string): void {
    if (!task.busy.delete(agent)) return;
    if (task.writing.delete(agent)) this.#unwritten--;
    else this.#leaveSlot(task);
  }

  /**
   * Starts what there is room for, after what is under way now: when a commit brings news to many tasks, all of them
   * take note of it first, and their turns then run in a row.
   */
  pump(): void {
    if (this.#due) return;
    this.#due = true;
    queueMicrotask(() => this.#startDue());
  }

  #startDue(): void {
    try {
      while (!this.#stopped && this.#running < this.#limits.turns && this.#unwritten < MOST_UNWRITTEN) {
        const instance = this.#ring.shift();
        if (instance === undefined) return;
        instance.queued = false;
        if (instance.running >= this.#limits.turnsPerInstance) continue;
        const task = instance.tasks.shift();
        if (task === undefined) continue;
        task.queued = false;
        if (!task.lost && task.busy.size < this.#limits.turnsPerTask && this.#start(task)) this.offer(task);
        else this.#idle(task);
        if (instance.tasks.length > 0) this.#enqueue(instance);
        else this.#forgetIfDone(instance);
      }
    } finally {
      this.#due = false;
    }
  }

  /** No turn starts any more. */
  stop(): void {
    this.#stopped = true;
  }

  #leaveSlot(task: T): void {
    const instance = this.#instanceOf(task);
    instance.running--;
    this.#running--;
    if (instance.tasks.length > 0) this.#enqueue(instance);
    else this.#forgetIfDone(instance);
  }

  #enqueue(instance: InstanceQueue<T>): void {
    if (instance.queued) return;
    instance.queued = true;
    this.#ring.push(instance);
  }

  /** Law 7: memory follows what is running, not who has ever had something running. */
  #forgetIfDone(instance: InstanceQueue<T>): void {
    if (instance.running > 0 || instance.tasks.length > 0) return;
    // A turn that ends at once forgets its instance while it starts: by now there may be another in its place.
    if (this.#instances.get(instance.key) === instance) this.#instances.delete(instance.key);
  }

  #instanceOf(task: T): InstanceQueue<T> {
    const key = task.instanceKey;
    let instance = this.#instances.get(key);
    if (instance === undefined) {
      instance = { key, tasks: new Queue(), running: 0, queued: false };
      this.#instances.set(key, instance);
    }
    return instance;
  }
}

/** First in, first out, without moving what is behind. */
class Queue<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  shift(): T | undefined {
    const item = this.#items[this.#head];
    if (item === undefined) return undefined;
    this.#items[this.#head] = undefined;
    this.#head++;
    if (this.#head > 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }
}
