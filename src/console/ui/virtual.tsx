/** Rows of one height: only those in view are in the document. */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Browsers lose precision beyond some ten million pixels: above this the scroll bar is scaled. */
const TALLEST = 8_000_000;

interface VirtualProps {
  readonly count: number;
  readonly rowHeight: number;
  readonly label: string;
  readonly render: (index: number) => ComponentChildren;
  readonly selected?: number | undefined;
  readonly onNearEnd?: () => void;
  readonly onPointed?: (pointed: boolean) => void;
  readonly role?: "grid" | "listbox" | "list";
  readonly columns?: number;
}

export function VirtualRows({
  count,
  rowHeight,
  label,
  render,
  selected,
  onNearEnd,
  onPointed,
  role = "list",
}: VirtualProps) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const measure = () => setView({ top: element.scrollTop, height: element.clientHeight });
    const seen = new ResizeObserver(measure);
    seen.observe(element);
    let frame = 0;
    const scrolled = () => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(measure);
    };
    element.addEventListener("scroll", scrolled, { passive: true });
    measure();
    return () => {
      seen.disconnect();
      element.removeEventListener("scroll", scrolled);
    };
  }, []);
  const whole = count * rowHeight;
  const scale = whole > TALLEST ? whole / TALLEST : 1;
  useEffect(() => {
    const element = box.current;
    if (element === null || selected === undefined || selected < 0) return;
    const at = (selected * rowHeight) / scale;
    if (at < element.scrollTop) element.scrollTop = at;
    else if (at + rowHeight > element.scrollTop + element.clientHeight)
      element.scrollTop = at + rowHeight - element.clientHeight;
  }, [selected]);
  const first = Math.max(0, Math.floor((view.top * scale) / rowHeight) - 4);
  const last = Math.min(count, first + Math.ceil(view.height / rowHeight) + 8);
  useEffect(() => {
    if (last > count - 40) onNearEnd?.();
  }, [last, count]);
  const rows = [];
  const shift = view.top * scale - view.top;
  for (let index = first; index < last; index++) {
    rows.push(
      <div
        key={index}
        class="virtual-row"
        role={role === "grid" ? undefined : "presentation"}
        style={{ transform: `translateY(${index * rowHeight - shift}px)`, height: `${rowHeight}px` }}
      >
        {render(index)}
      </div>,
    );
  }
  return (
    <div
      class="virtual"
      ref={box}
      role={role}
      aria-label={label}
      tabIndex={0}
      onMouseEnter={() => onPointed?.(true)}
      onMouseLeave={() => onPointed?.(false)}
    >
      <div class="sizer" role="presentation" style={{ height: `${Math.min(whole, TALLEST)}px` }}>
        {rows}
      </div>
    </div>
  );
}
