/** The console: mounts the frame and loads the screen that the address names. */
import "./style/main.css";
import { Component, type ComponentType, render } from "preact";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { Dialogs } from "./app/dialogs.js";
import { Frame } from "./app/frame.js";
import { SignIn } from "./app/sign-in.js";
import { BASE, caller, identify } from "./data/api.js";
import { startFeed } from "./data/feed.js";
import { startAttention } from "./data/needs-you.js";
import { startNeighbors } from "./data/neighbors.js";
import { onlyRunning, startTasks } from "./data/tasks.js";
import { listenForKeys } from "./nav/keys.js";
import { followLinks, go, route } from "./nav/route.js";
import { startTheme } from "./nav/theme.js";
import { showHiddenInAttributes } from "./ui/attributes.js";
import { Broken, ErrorState, Waiting } from "./views/parts/states.js";
import Tasks, { taskHref } from "./views/tasks/tasks.js";

type Screen = ComponentType<{ readonly id?: string | undefined; readonly byKey?: boolean }>;

const LOADERS: Readonly<Record<string, () => Promise<{ default: Screen }>>> = {
  task: () => import("./views/task/task.js"),
  "needs-you": () => import("./views/needs-you/needs-you.js"),
  swarm: () => import("./views/swarm/swarm.js"),
  talk: () => import("./views/talk/talk.js"),
  federation: () => import("./views/federation/federation.js"),
  mesh: () => import("./views/mesh/mesh.js"),
  system: () => import("./views/system/system.js"),
  access: () => import("./views/access/access.js"),
};

const loaded = new Map<string, Screen>();

function screenName(): string {
  const { screen, id } = route.value;
  if ((screen === "tasks" || screen === "all") && id !== undefined) return "task";
  return screen in LOADERS ? screen : "tasks";
}

function Current() {
  const name = screenName();
  const [, arrived] = useState(0);
  const [failed, setFailed] = useState<Error | undefined>(undefined);
  useEffect(() => {
    const load = LOADERS[name];
    if (name === "tasks" || loaded.has(name) || load === undefined) return;
    load().then(
      (module) => {
        loaded.set(name, module.default);
        arrived((count) => count + 1);
      },
      (error: unknown) => setFailed(error instanceof Error ? error : new Error(String(error))),
    );
  }, [name]);
  if (failed !== undefined) return <ErrorState error={failed} onRetry={() => location.reload()} />;
  const View = name === "tasks" ? Tasks : loaded.get(name);
  if (View === undefined) return <Waiting />;
  const { id, screen } = route.value;
  return <View key={name === "task" ? `task ${id ?? ""}` : name} id={id} byKey={screen === "all"} />;
}

class Boundary extends Component<{ readonly name: string }, { readonly error: Error | undefined }> {
  override state = { error: undefined };
  static override getDerivedStateFromError(error: Error) {
    return { error };
  }
  override componentDidUpdate(before: { readonly name: string }) {
    if (before.name !== this.props.name && this.state.error !== undefined)
      this.setState({ error: undefined });
  }
  override render() {
    const { error } = this.state;
    if (error !== undefined)
      return <Broken error={error} onRetry={() => this.setState({ error: undefined })} />;
    return <>{this.props.children}</>;
  }
}

/** In development the console's own address leads to the task that runs, if there is only one. */
async function openOnlyTask(): Promise<void> {
  const here = () => location.pathname + location.search === BASE.pathname;
  if (caller.value?.dev !== true || !here()) return;
  const task = await onlyRunning().catch(() => undefined);
  if (task !== undefined && here()) go(taskHref(task), true);
}

function App() {
  const [failed, setFailed] = useState<Error | undefined>(undefined);
  const [, again] = useState(0);
  const who = caller.value;
  // Before the first paint.
  useLayoutEffect(() => {
    if (caller.value !== undefined) return;
    identify().then(openOnlyTask, (error: unknown) =>
      setFailed(error instanceof Error ? error : new Error(String(error))),
    );
  }, [failed]);
  if (failed !== undefined && who === undefined) {
    return (
      <Frame>
        <ErrorState
          error={failed}
          onRetry={() => {
            setFailed(undefined);
            again((count) => count + 1);
          }}
        />
      </Frame>
    );
  }
  const { screen, id } = route.value;
  return (
    <>
      <Frame>
        {who === undefined ? (
          <Waiting />
        ) : (
          <Boundary name={`${screen} ${id ?? ""}`}>
            <Current />
          </Boundary>
        )}
      </Frame>
      {who !== null && <Dialogs />}
      {who === null && <SignIn />}
    </>
  );
}

// The screen's code comes while the page finds out who it acts as.
void LOADERS[screenName()]?.().catch(() => {});
showHiddenInAttributes();
startTheme();
listenForKeys();
followLinks();
startTasks();
startAttention();
startNeighbors();
startFeed();
const root = document.getElementById("app");
if (root !== null) render(<App />, root);
