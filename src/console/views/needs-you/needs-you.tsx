/** Everything that waits for a person, oldest first. */
import { useEffect, useState } from "preact/hooks";
import { isAdmin } from "../../data/api.js";
import { digestVersion, wantDigest } from "../../data/digest.js";
import { loadWaiting, sweep, type WaitingTask, waiting, waitingLoaded } from "../../data/needs-you.js";
import { ago, ownerName, principalOf } from "../../model/words.js";
import { screenCommands } from "../../nav/dialogs.js";
import { useKeys } from "../../nav/keys.js";
import { go, href } from "../../nav/route.js";
import { useTop } from "../../nav/title.js";
import { Kbd, useNow } from "../../ui/kit.js";
import { Text } from "../../ui/text.js";
import { Answer, digestOfCalls } from "../parts/answer.js";
import { heldWords } from "../parts/held.js";
import { LedHere } from "../parts/led-here.js";
import { SearchButton } from "../parts/search-button.js";
import { Waiting } from "../parts/states.js";

const NOTIFY = "mailroom.notify";

function hrefOf(task: WaitingTask): string {
  return isAdmin() ? href("all", task.key) : href("tasks", task.taskId);
}

export default function NeedsYou() {
  const tasks = waiting.value;
  const [chosen, setChosen] = useState<string | undefined>(undefined);
  const [told, setTold] = useState(
    localStorage.getItem(NOTIFY) === "on" &&
      "Notification" in window &&
      Notification.permission === "granted",
  );
  useEffect(() => {
    void loadWaiting();
    // The feed does not tell of tasks of others that the caller was named for.
    const timer = setInterval(() => void (document.hidden || loadWaiting()), 15_000);
    return () => {
      clearInterval(timer);
      sweep();
    };
  }, []);
  const at = Math.max(
    0,
    tasks.findIndex(({ key }) => key === chosen),
  );
  const task = tasks[at];
  const pick = (index: number) => {
    const next = tasks[Math.max(0, Math.min(tasks.length - 1, index))];
    if (next !== undefined) setChosen(next.key);
  };
  const answer = () => document.querySelector<HTMLElement>("[data-answer]")?.focus();
  useKeys({
    j: () => pick(at + 1),
    k: () => pick(at - 1),
    ArrowDown: () => pick(at + 1),
    ArrowUp: () => pick(at - 1),
    s: () => pick(at + 1),
    a: answer,
    Enter: () => {
      if (task !== undefined && task.calls === undefined) go(hrefOf(task));
    },
  });
  useTop("Needs you", () => ({ left: <h1>Needs you</h1>, right: <SearchButton /> }), []);
  useEffect(() => {
    screenCommands.value = [{ name: "Answer", key: "a", run: answer }];
    return () => {
      screenCommands.value = [];
    };
  }, []);
  // The number in the title and, if wanted, a notification tell that there is more.
  const open = tasks.filter(({ waits }) => waits).length;
  useEffect(() => {
    document.title = open > 0 ? `(${open}) Needs you · Mailroom` : "Needs you · Mailroom";
  }, [open]);
  const tell = async (on: boolean) => {
    if (on && "Notification" in window && (await Notification.requestPermission()) !== "granted") return;
    localStorage.setItem(NOTIFY, on ? "on" : "off");
    setTold(on);
  };
  if (!waitingLoaded.value) return <Waiting />;
  if (tasks.length === 0) {
    return (
      <div class="empty">
        <h2>Nothing waits for you</h2>
        <p>
          When an agent asks something, or needs something that only you can give, it appears here at once.
        </p>
      </div>
    );
  }
  return (
    <div class="needs">
      <div class="needs-list">
        <div class="needs-bar">
          <span>oldest first</span>
          <span class="grow" />
          <label class="check">
            <input
              type="checkbox"
              checked={told}
              onChange={(event) => void tell(event.currentTarget.checked)}
            />{" "}
            tell me when there is more
          </label>
        </div>
        <div class="scroll grow" role="listbox" aria-label="What waits for you" tabIndex={0}>
          {tasks.map((each, index) => (
            <Row key={each.key} task={each} selected={index === at} onPick={() => setChosen(each.key)} />
          ))}
        </div>
        <footer class="tasks-foot">
          <Kbd>j</Kbd> <Kbd>k</Kbd> move <Kbd>a</Kbd> answer <Kbd>s</Kbd> skip <Kbd>⏎</Kbd> open
        </footer>
      </div>
      {task !== undefined && <Detail key={task.key} task={task} />}
    </div>
  );
}

function digestFor(task: WaitingTask) {
  if (task.calls !== undefined) return digestOfCalls(task.key, task.taskId, task.calls);
  return wantDigest(task.key, task.taskId, task.number);
}

function Row({
  task,
  selected,
  onPick,
}: {
  readonly task: WaitingTask;
  readonly selected: boolean;
  readonly onPick: () => void;
}) {
  void digestVersion.value;
  const now = useNow(5_000);
  const digest = digestFor(task);
  const [call] = digest?.open ?? [];
  const asks =
    digest?.held != null
      ? `${digest.held.agent} ${heldWords(digest.held)}`
      : call === undefined
        ? ""
        : call.kind === "approval"
          ? `${call.agent} wants to run ${call.name}`
          : `${call.agent} asks ${call.name}`;
  return (
    <div
      role="option"
      tabIndex={-1}
      aria-selected={selected}
      class={`needs-row ${selected ? "selected" : ""} ${task.waits ? "" : "done"}`}
      onClick={onPick}
      onKeyDown={() => {}}
    >
      <span class={`dot ${task.waits ? "wait" : "good"}`} />
      <span class="dim num">{task.waits ? ago(now - task.since) : "sent"}</span>
      <span class="cut">
        <b>
          <Text>{task.title === "" ? task.taskId : task.title}</Text>
        </b>
        <br />
        <span class="dim">
          <Text>{`${asks}${asks === "" ? "" : " · "}${ownerName(task.owner)}`}</Text>
        </span>
      </span>
    </div>
  );
}

/** The feed does not tell of tasks of others. */
function answered(): void {
  setTimeout(() => void loadWaiting(), 1_500);
}

function Detail({ task }: { readonly task: WaitingTask }) {
  void digestVersion.value;
  const digest = digestFor(task);
  return (
    <div class="needs-detail scroll" tabIndex={0} role="region" aria-label="The question">
      <div class="needs-inside">
        <header class="needs-head">
          <h2>
            <Text>{task.title === "" ? task.taskId : task.title}</Text>
          </h2>
          <span class="dim">
            <Text>{principalOf(task.owner)}</Text>
          </span>
          {task.calls === undefined ? (
            <a class="button" href={hrefOf(task)}>
              Open <Kbd>⏎</Kbd>
            </a>
          ) : (
            <span class="tag">you were named for it</span>
          )}
        </header>
        {digest === undefined ? (
          <Waiting />
        ) : (
          <Answer task={task} digest={digest} {...(task.calls !== undefined && { onSent: answered })} />
        )}
        {task.calls === undefined && (
          <LedHere key={task.key} taskKey={task.key} taskId={task.taskId} number={task.number} />
        )}
      </div>
    </div>
  );
}
