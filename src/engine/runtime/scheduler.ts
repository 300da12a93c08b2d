/**
 * Chooses the task that runs next. Free slots go round robin over instances, then over an instance's tasks, so that one
 * busy task or caller cannot starve the others. An instance without running turns goes first; one that has its share
 * waits while others are below theirs.
 */
import type { Loop } from "../../journal/index.js";
import { shareOf } from "./running-task-limits.js";

/** The scheduler's view of a task. */
export interface Schedulable {
  readonly instanceKey: string;
  /** Its busy agents: each holds a slot. */
  readonly doing: { readonly size: number };
  queued: boolean;
}

interface InstanceQueue<T> {
  readonly key: string;
  readonly tasks: Queue<T>;
  running: number;
  queued: boolean;
}

export interface SchedulerLimits {
  readonly turns: number;
  readonly turnsPerTask: number;
}

/** Turns that start in a row before the event loop continues. */
const MOST_IN_A_ROW = 512;
/** An instance without running turns may exceed the limit by one turn, up to this factor in total. */
const MOST_OVER = 1.25;

export class Scheduler<T extends Schedulable> {
  readonly #instances = new Map<string, InstanceQueue<T>>();
  /** Instances without running turns, in order of arrival. */
  readonly #first = new Queue<InstanceQueue<T>>();
  readonly #ring = new Queue<InstanceQueue<T>>();
  readonly #limits: SchedulerLimits;
  readonly #loop: Loop;
  readonly #start: (task: T) => boolean;
  readonly #idle: (task: T) => void;
  readonly canStart: () => boolean;
  readonly #share: number;
  #running = 0;
  /** Whether a pump is scheduled or running. */
  #due = false;
  #stopped = false;

  /**
   * `start` starts one turn in the task and returns whether there was one. `idle` is called for a task that left the
   * queue without a turn: it may have ended while it was queued. `mayStart` returns whether any turn may start now.
   */
  constructor(parts: {
    limits: SchedulerLimits;
    loop: Loop;
    start: (task: T) => boolean;
    idle: (task: T) => void;
    mayStart?: () => boolean;
  }) {
    this.#limits = parts.limits;
    this.#loop = parts.loop;
    this.#start = parts.start;
    this.#idle = parts.idle;
    this.canStart = parts.mayStart ?? (() => true);
    this.#share = shareOf(parts.limits.turns);
  }

  get running(): number {
    return this.#running;
  }

  /** Queues a task that may have a turn to start. Repeated calls are cheap. */
  offer(task: T): void {
    if (this.#stopped || task.queued) return;
    const instance = this.#instanceOf(task);
    task.queued = true;
    instance.tasks.push(task);
    this.#enqueue(instance);
    this.pump();
  }

  /** Takes a slot for an agent of this task. */
  occupy(task: T): void {
    this.#instanceOf(task).running++;
    this.#running++;
  }

  release(task: T): void {
    const instance = this.#instanceOf(task);
    instance.running--;
    this.#running--;
    if (instance.tasks.length > 0) this.#enqueue(instance);
    else this.#forgetIfDone(instance);
    this.pump();
  }

  /**
   * Starts turns after the current callback: a commit can concern many tasks, and all of them are offered before the first
   * turn runs.
   */
  pump(): void {
    if (this.#due) return;
    this.#due = true;
    this.#loop.micro(() => this.#startDue());
  }

  /** No turn starts any longer. */
  stop(): void {
    this.#stopped = true;
  }

  #startDue(): void {
    let left = MOST_IN_A_ROW;
    try {
      while (!this.#stopped && left > 0 && this.canStart()) {
        const instance = this.#next();
        if (instance === undefined) return;
        const task = instance.tasks.shift();
        if (task !== undefined) {
          task.queued = false;
          left--;
          if (task.doing.size < this.#limits.turnsPerTask && this.#start(task)) this.offer(task);
          else this.#idle(task);
        }
        if (instance.tasks.length > 0) this.#enqueue(instance);
        else this.#forgetIfDone(instance);
      }
    } finally {
      this.#due = false;
    }
    if (left === 0) this.#loop.soon(() => this.pump());
  }

  #next(): InstanceQueue<T> | undefined {
    const { turns } = this.#limits;
    if (this.#running >= turns * MOST_OVER) return undefined;
    for (let instance = this.#first.shift(); instance !== undefined; instance = this.#first.shift()) {
      if (instance.running === 0) {
        instance.queued = false;
        return instance;
      }
      this.#ring.push(instance);
    }
    if (this.#running >= turns) return undefined;
    const instance = this.#belowShare() ?? this.#ring.shift();
    if (instance !== undefined) instance.queued = false;
    return instance;
  }

  /** Instances that hold their share are skipped and keep their position in the ring. */
  #belowShare(): InstanceQueue<T> | undefined {
    for (let tries = this.#ring.length; tries > 0; tries--) {
      const instance = this.#ring.shift();
      if (instance === undefined || instance.running < this.#share) return instance;
      this.#ring.push(instance);
    }
    return undefined;
  }

  #enqueue(instance: InstanceQueue<T>): void {
    if (instance.queued) return;
    instance.queued = true;
    if (instance.running === 0) this.#first.push(instance);
    else this.#ring.push(instance);
  }

  /** Keeps memory in proportion to running instances. */
  #forgetIfDone(instance: InstanceQueue<T>): void {
    if (instance.running > 0 || instance.tasks.length > 0 || instance.queued) return;
    // A turn that ends immediately removes its instance while it starts; a new object may have replaced it.
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

/** A first-in, first-out queue that does not move its elements. */
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
