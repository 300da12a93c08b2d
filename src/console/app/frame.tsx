/** The frame around every screen: rail, top bar, dialogs. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { caller, callerName, closeSession, isAdmin } from "../data/api.js";
import { attention } from "../data/attention.js";
import { feedState, hello, lastSeen, newerVersion, position, tryNow } from "../data/feed.js";
import { counts } from "../data/tasks.js";
import { grouped, sinceThen } from "../model/words.js";
import { dialog } from "../nav/dialogs.js";
import { useKeys } from "../nav/keys.js";
import { go, href, route } from "../nav/route.js";
import { theme, toggleTheme } from "../nav/theme.js";
import { top } from "../nav/title.js";
import { Icon, type IconName } from "../ui/icon.js";
import { MenuButton, Toasts, useNow } from "../ui/kit.js";
import { Text } from "../ui/text.js";

interface Place {
  readonly screen: string;
  readonly name: string;
  readonly short?: string;
  readonly icon: IconName;
  readonly key: string;
  readonly admin?: boolean;
  /** On a phone it is in the menu "More". */
  readonly wide?: boolean;
}

export const PLACES: readonly Place[] = [
  { screen: "tasks", name: "Tasks", icon: "tasks", key: "t" },
  { screen: "needs-you", name: "Needs you", icon: "waits", key: "n" },
  { screen: "swarm", name: "Swarm", icon: "swarm", key: "s" },
  { screen: "talk", name: "Conversations", short: "Talk", icon: "talk", key: "c" },
  { screen: "federation", name: "Federation", icon: "globe", key: "f", wide: true },
  { screen: "mesh", name: "Mesh", icon: "key", key: "m", admin: true, wide: true },
  { screen: "system", name: "System", icon: "pulse", key: "y", admin: true, wide: true },
  { screen: "access", name: "Access", icon: "lock", key: "a", wide: true },
];

function Rail() {
  const total = counts.value;
  const all =
    total === undefined
      ? undefined
      : total.running + total.paused + total.completed + total.failed + total.cancelled;
  const current = route.value.screen === "all" ? "tasks" : route.value.screen;
  return (
    <div class="rail">
      <a class="brand" href={href("tasks")} aria-label="Mailroom, tasks">
        <Icon name="mail" size={18} />
        <span>Mailroom</span>
      </a>
      <nav aria-label="Screens">
        {PLACES.filter(({ admin }) => admin !== true || isAdmin()).map(
          ({ screen, name, short, icon, wide }) => {
            const wrong = attention.value.get(screen) ?? 0;
            return (
              <a
                key={screen}
                href={href(screen)}
                class={wide === true ? "wide" : ""}
                aria-current={current === screen ? "page" : undefined}
                title={name}
              >
                <Icon name={icon} size={17} />
                <span class="label">{innerWidth <= 720 ? (short ?? name) : name}</span>
                {wrong > 0 ? (
                  <span class="badge">{grouped(wrong)}</span>
                ) : (
                  screen === "tasks" && all !== undefined && <span class="count">{grouped(all)}</span>
                )}
              </a>
            );
          },
        )}
        <More current={current} />
      </nav>
      <div class="below">
        <Connection />
        <Who />
      </div>
    </div>
  );
}

/** On a phone: the screens that have no room in the bar, and what else stands in the rail. */
function More({ current }: { readonly current: string }) {
  const places = PLACES.filter(({ wide, admin }) => wide === true && (admin !== true || isAdmin()));
  const wrong = places.reduce((total, { screen }) => total + (attention.value.get(screen) ?? 0), 0);
  const inside = places.find(({ screen }) => screen === current);
  return (
    <div class={`phone-only more ${inside === undefined ? "" : "here"}`}>
      <MenuButton
        label="More screens"
        items={[
          ...places.map(({ screen, name }) => ({
            name: (attention.value.get(screen) ?? 0) > 0 ? `${name} (${attention.value.get(screen)})` : name,
            run: () => go(href(screen)),
          })),
          ...pageItems(),
        ]}
      >
        <Icon name="more" size={17} />
        <span class="label">{inside?.name ?? "More"}</span>
        {wrong > 0 && <span class="badge">{grouped(wrong)}</span>}
      </MenuButton>
    </div>
  );
}

function pageItems() {
  const dev = caller.value?.dev === true;
  return [
    ...(dev ? [{ name: "Act as somebody else", run: () => (dialog.value = { kind: "identity" }) }] : []),
    { name: theme.value === "dark" ? "Light colors" : "Dark colors", key: "t", run: toggleTheme },
    { name: "Keys", key: "?", run: () => (dialog.value = { kind: "keys" }) },
    ...(dev ? [] : [{ name: "Sign out", run: () => void closeSession() }]),
  ];
}

function Connection() {
  const state = feedState.value;
  const newer = newerVersion.value;
  if (newer !== undefined) {
    return (
      <button type="button" onClick={() => location.reload()}>
        <span class="dot wait" />
        <span class="words">Reload for {newer}</span>
      </button>
    );
  }
  if (state === "cut") return <Cut />;
  const at = position.value;
  return (
    <div title={state === "live" ? "The page follows the server" : "Connecting"}>
      <span class={`dot ${state === "live" ? "good" : ""}`} />
      <span class="words grow">
        {state === "live" ? "Live" : state === "asleep" ? "Asleep" : "Connecting"}
      </span>
      {at !== undefined && /^\d+$/.test(at) && <span class="words num">#{grouped(Number(at))}</span>}
    </div>
  );
}

function Cut() {
  const now = useNow();
  const seen = lastSeen.value;
  return (
    <button type="button" class="connection-cut" onClick={tryNow} title="Try now">
      <span class="dot wait pulse" />
      <span class="words">
        Reconnecting{seen === undefined ? "" : `, last seen ${sinceThen(now - seen)}`}
      </span>
    </button>
  );
}

function Who() {
  const who = caller.value;
  if (who === null || who === undefined) return null;
  return (
    <div class="who-row">
      <MenuButton label={`${callerName()}: account and page`} items={pageItems()}>
        <span class="who">
          <span class="initial">{who.role.slice(0, 1).toUpperCase()}</span>
        </span>
        <span class="words cut">
          <Text>{callerName()}</Text>
        </span>
        {who.dev && <span class="tag words">dev</span>}
      </MenuButton>
    </div>
  );
}

export function Frame({ children }: { readonly children: ComponentChildren }) {
  const open = (kind: "palette" | "keys" | "new-task") => () => {
    dialog.value = { kind };
  };
  const jumps = Object.fromEntries(
    PLACES.filter(({ admin }) => admin !== true || isAdmin()).map(({ key, screen }) => [
      `g ${key}`,
      () => go(href(screen)),
    ]),
  );
  useKeys({
    ...jumps,
    "/": open("palette"),
    "Ctrl+k": open("palette"),
    "?": open("keys"),
    n: open("new-task"),
    t: toggleTheme,
  });
  // Before the next key can arrive: a dialog that it opens keeps the focus.
  useLayoutEffect(() => {
    document.getElementById("main")?.focus();
  }, [route.value.screen, route.value.id]);
  const { left, right } = top.value;
  return (
    <div class="frame">
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        Skip to the content
      </a>
      <Rail />
      <header class="top">
        {left}
        <span class="grow" />
        {right}
      </header>
      <main
        id="main"
        tabIndex={-1}
        aria-label={hello.value === undefined ? "Mailroom" : `Swarm ${hello.value.swarm}`}
      >
        {feedState.value === "cut" && (
          <div class="phone-only cut-bar">
            <Cut />
          </div>
        )}
        {children}
      </main>
      <Toasts />
    </div>
  );
}
