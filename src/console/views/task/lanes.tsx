/** The lanes of the open task, in the document. */
import { useEffect, useRef } from "preact/hooks";
import { isAdmin } from "../../data/api.js";
import type { OpenTask } from "../../data/journal.js";
import type { OutboxItem, OutboxPage } from "../../data/shapes.js";
import { useRequest } from "../../data/use.js";
import { doing } from "../../model/diff.js";
import { plural } from "../../model/words.js";
import { theme } from "../../nav/theme.js";
import { type LanesFilter, LanesView, type Thinking } from "../../paint/lanes-view.js";

interface LanesProps {
  readonly task: OpenTask;
  readonly filter: LanesFilter;
  readonly clock: boolean;
  readonly unfolded: boolean;
  readonly selected: number | undefined;
  readonly asOf: number | undefined;
  readonly onSelect: (n: number) => void;
  readonly view: { current: LanesView | undefined };
}

/** Agents that have mail and have not answered: they think right now. */
function thinkingIn(task: OpenTask): Thinking[] {
  const state = task.travel.newest;
  if (state === undefined || state.status !== "running" || task.status.value !== "running") return [];
  const found: Thinking[] = [];
  for (const [agent, { mailbox, turn, open }] of state.agents) {
    const [mail] = mailbox;
    if (mail === undefined || turn !== undefined || open.length > 0) continue;
    const first = task.entries[0]?.n ?? 1;
    found.push({ agent, since: mail.number, at: task.entries[mail.number - first]?.at ?? Date.now() });
  }
  return found;
}

/**
 * What agents do now or at the cursor, in words; those that do nothing are left out. Of other swarms: the mail that has
 * not reached them, with its tries if the outbox is known.
 */
function doingIn(
  task: OpenTask,
  asOf: number | undefined,
  outbox: readonly OutboxItem[],
): Map<string, string> | undefined {
  const status = task.status.value;
  const state = asOf === undefined ? task.travel.newest : task.travel.at(asOf);
  const ended = status !== "running" && status !== "paused" && (state?.outbound ?? []).length === 0;
  if (asOf === undefined && ended) return undefined;
  const found = new Map<string, string>();
  for (const { swarm } of state?.outbound ?? []) {
    const lane = task.lanes.lanes.find((one) => one.kind === "foreign" && one.swarm === swarm);
    if (lane === undefined) continue;
    const tries = outbox
      .filter((item) => item.task_key === task.head.value?.key && item.target === swarm)
      .map(({ attempts }) => attempts);
    const most = Math.max(0, ...tries);
    found.set(lane.id, most === 0 ? "mail waits" : `mail waits, ${plural(most, "try", "tries")}`);
  }
  for (const [name, agent] of state?.agents ?? []) {
    // In a task that does not run, mail waits.
    const works = state?.status === "running" || agent.open.length > 0 || agent.turn !== undefined;
    const words = doing(agent);
    if (works && words !== "idle") found.set(name, words);
  }
  return found;
}

export function Lanes({ task, filter, clock, unfolded, selected, asOf, onSelect, view }: LanesProps) {
  const host = useRef<HTMLDivElement>(null);
  const select = useRef(onSelect);
  select.current = onSelect;
  useEffect(() => {
    if (host.current === null) return;
    const made = new LanesView(host.current, (n) => select.current(n));
    view.current = made;
    return () => {
      made.close();
      view.current = undefined;
    };
  }, []);
  const version = task.version.value;
  const shade = theme.value;
  const status = task.status.value;
  const waits = asOf === undefined && (task.travel.newest?.outbound ?? []).length > 0;
  const outbox = useRequest<OutboxPage>(
    waits && isAdmin() ? "admin/outbox" : undefined,
    { queue: "federation", status: "waiting", limit: 100 },
    4_000,
  ).value;
  useEffect(() => {
    const words = doingIn(task, asOf, outbox?.items ?? []);
    const show = () => {
      const thinking = asOf === undefined ? thinkingIn(task) : [];
      view.current?.update({
        model: task.lanes,
        filter,
        clock,
        unfolded,
        selected,
        asOf,
        thinking,
        doing: words,
        now: Date.now(),
      });
      return thinking.length > 0;
    };
    if (!show()) return;
    const timer = setInterval(show, 500);
    return () => clearInterval(timer);
  }, [version, filter, clock, unfolded, selected, asOf, shade, status, outbox]);
  return <div class="lanes" ref={host} />;
}
