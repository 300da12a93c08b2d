/** Small parts that every screen uses. */
import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Status } from "../data/shapes.js";
import { useKeys } from "../nav/keys.js";
import { Icon } from "./icon.js";
import { Text } from "./text.js";

const STATUS: Readonly<Record<Status, string>> = {
  running: "Running",
  paused: "Needs you",
  completed: "Completed",
  failed: "Failed",
  cancelled: "Cancelled",
};

export function StatusPill({ status, word }: { readonly status: Status; readonly word?: string }) {
  return <span class={`pill ${status}`}>{word ?? STATUS[status]}</span>;
}

export function Kbd({ children }: { readonly children: string }) {
  return <kbd aria-hidden="true">{children}</kbd>;
}

export function Copy({ text, label = "Copy" }: { readonly text: string; readonly label?: string }) {
  const [done, setDone] = useState(false);
  return (
    <button
      type="button"
      class="button small"
      onClick={() =>
        void copyText(text).then((ok) => {
          setDone(ok);
          setTimeout(() => setDone(false), 1_500);
        })
      }
    >
      {done ? "Copied" : label}
    </button>
  );
}

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    toast("This browser does not let the page copy. Select the text instead.", "bad");
    return false;
  }
}

export function Command({ text }: { readonly text: string }) {
  return (
    <div class="command">
      <code tabIndex={0}>{text}</code>
      <Copy text={text} />
    </div>
  );
}

interface TabsProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly tabs: readonly { readonly id: T; readonly name: string; readonly count?: string | undefined }[];
  readonly under?: boolean;
  readonly onPick: (id: T) => void;
}

export function Tabs<T extends string>({ label, value, tabs, under = false, onPick }: TabsProps<T>) {
  const move = (event: JSX.TargetedKeyboardEvent<HTMLElement>) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const at = tabs.findIndex(({ id }) => id === value);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    if (next === undefined) return;
    onPick(next.id);
    const { currentTarget } = event;
    requestAnimationFrame(() => currentTarget.querySelector<HTMLElement>('[aria-selected="true"]')?.focus());
  };
  return (
    <div class={under ? "tabs under" : "tabs"} role="tablist" aria-label={label} onKeyDown={move}>
      {tabs.map(({ id, name, count }) => (
        <button
          type="button"
          role="tab"
          key={id}
          aria-selected={id === value}
          tabIndex={id === value ? 0 : -1}
          onClick={() => onPick(id)}
        >
          {name}
          {count !== undefined && <span>{count}</span>}
        </button>
      ))}
    </div>
  );
}

interface ChoiceProps<T extends string> {
  /** Values and their names. */
  readonly of: Readonly<Record<T, string>>;
  readonly value: T;
  readonly onPick: (value: T) => void;
}

/** A few values, of which one holds. */
export function Choice<T extends string>({ of, value, onPick }: ChoiceProps<T>) {
  return (
    <span class="row-of">
      {(Object.keys(of) as T[]).map((each) => (
        <button
          type="button"
          class="chip"
          key={each}
          aria-pressed={each === value}
          onClick={() => onPick(each)}
        >
          {of[each]}
        </button>
      ))}
    </span>
  );
}

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  readonly plain?: boolean;
}

/** Keeps the focus inside, closes with Escape, gives the focus back. */
export function Dialog({ title, onClose, children, plain = false }: DialogProps) {
  const box = useRef<HTMLDivElement>(null);
  useKeys({ Escape: onClose }, true);
  useLayoutEffect(() => {
    const before = document.activeElement;
    const find = (selector: string) => box.current?.querySelector<HTMLElement>(selector) ?? undefined;
    const first = find("[data-first]") ?? find("textarea, input, button.main") ?? find("button");
    first?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  const stay = (event: JSX.TargetedKeyboardEvent<HTMLElement>) => {
    if (event.key !== "Tab") return;
    const inside = [
      ...event.currentTarget.querySelectorAll<HTMLElement>(
        "a[href], button:not(:disabled), input, textarea, select, [tabindex='0']",
      ),
    ];
    const [first, last] = [inside[0], inside.at(-1)];
    if (event.shiftKey && document.activeElement === first) {
      event.preventDefault();
      last?.focus();
    } else if (!event.shiftKey && document.activeElement === last) {
      event.preventDefault();
      first?.focus();
    }
  };
  return (
    <div
      class="dialog-back"
      onMouseDown={(event) => {
        if (event.target === event.currentTarget) onClose();
      }}
    >
      <div class="dialog" role="dialog" aria-modal="true" aria-label={title} ref={box} onKeyDown={stay}>
        {plain ? (
          children
        ) : (
          <>
            <header>
              <h2>{title}</h2>
              <button type="button" class="button quiet small" aria-label="Close" onClick={onClose}>
                <Icon name="close" size={14} />
              </button>
            </header>
            <div class="inside">{children}</div>
          </>
        )}
      </div>
    </div>
  );
}

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly tone: "neutral" | "good" | "bad";
}

const toasts = signal<readonly Toast[]>([]);
let nextToast = 1;

export function toast(text: string, tone: Toast["tone"] = "neutral"): void {
  const id = nextToast++;
  toasts.value = [...toasts.value.slice(-3), { id, text, tone }];
  setTimeout(() => {
    toasts.value = toasts.value.filter((each) => each.id !== id);
  }, 6_000);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, tone }) => (
        <div class="toast" key={id}>
          <span class={tone}>
            <Text>{text}</Text>
          </span>
        </div>
      ))}
    </div>
  );
}

export interface MenuItem {
  readonly name: string;
  readonly key?: string;
  readonly danger?: boolean;
  readonly run: () => void;
}

export function MenuButton({
  label,
  icon = false,
  items,
  class: kind = "button quiet",
  children,
}: {
  readonly label: string;
  /** There is no text inside. */
  readonly icon?: boolean;
  readonly items: readonly MenuItem[];
  readonly class?: string;
  readonly children: ComponentChildren;
}) {
  const [at, setAt] = useState<{ x: number; y: number; up: boolean } | undefined>(undefined);
  return (
    <>
      <button
        type="button"
        class={kind}
        aria-haspopup="menu"
        aria-label={icon ? label : undefined}
        title={label}
        aria-expanded={at !== undefined}
        onClick={(event) => {
          const box = event.currentTarget.getBoundingClientRect();
          setAt({ x: box.right, y: box.bottom, up: box.top > innerHeight / 2 });
        }}
      >
        {children}
      </button>
      {at !== undefined && <Menu label={label} items={items} at={at} onClose={() => setAt(undefined)} />}
    </>
  );
}

function Menu({
  label,
  items,
  at,
  onClose,
}: {
  readonly label: string;
  readonly items: readonly MenuItem[];
  readonly at: { x: number; y: number; up: boolean };
  readonly onClose: () => void;
}) {
  const box = useRef<HTMLDivElement>(null);
  const opener = useRef<Element | null>(null);
  const giveBack = () => {
    if (opener.current instanceof HTMLElement) opener.current.focus();
  };
  useKeys({ Escape: onClose }, true);
  useLayoutEffect(() => {
    opener.current = document.activeElement;
    const menu = box.current;
    if (menu !== null) {
      const { width, height } = menu.getBoundingClientRect();
      menu.style.left = `${Math.max(8, Math.min(at.x - width, innerWidth - width - 8))}px`;
      menu.style.top = `${at.up ? Math.max(8, at.y - height - 34) : at.y + 4}px`;
      menu.querySelector<HTMLElement>("button")?.focus();
    }
    const away = (event: MouseEvent) => {
      if (!(event.target instanceof Node && menu?.contains(event.target) === true)) onClose();
    };
    document.addEventListener("mousedown", away);
    return () => {
      document.removeEventListener("mousedown", away);
      // A dialog that the chosen item opened has the focus already.
      if (menu?.contains(document.activeElement) === true) giveBack();
    };
  }, []);
  const move = (event: JSX.TargetedKeyboardEvent<HTMLElement>) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const buttons = [...event.currentTarget.querySelectorAll<HTMLElement>("button")];
    const focused = document.activeElement;
    const index = focused instanceof HTMLElement ? buttons.indexOf(focused) : -1;
    buttons[(index + step + buttons.length) % buttons.length]?.focus();
  };
  return (
    <div class="menu" role="menu" aria-label={label} ref={box} onKeyDown={move}>
      {items.map(({ name, key, danger, run }) => (
        <button
          type="button"
          role="menuitem"
          key={name}
          class={danger === true ? "bad" : ""}
          onClick={() => {
            giveBack();
            onClose();
            run();
          }}
        >
          {name}
          {key !== undefined && <Kbd>{key}</Kbd>}
        </button>
      ))}
    </div>
  );
}

/** Re-renders once a second (or slower) while it is there and the page is seen. */
export function useNow(every = 1_000): number {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) setNow(Date.now());
    }, every);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}

export function Panel({
  title,
  note,
  children,
  class: extra = "",
}: {
  readonly title: string;
  readonly note?: ComponentChildren;
  readonly children: ComponentChildren;
  readonly class?: string;
}) {
  return (
    <section class={`panel ${extra}`} aria-label={title}>
      <header>
        <h2>{title}</h2>
        {note !== undefined && <span>{note}</span>}
      </header>
      {children}
    </section>
  );
}
