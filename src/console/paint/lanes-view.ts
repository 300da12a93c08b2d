/**
 * Shows lanes: rows in view are recycled elements with text, lines and bars of the same rows are one canvas of the size
 * of the view. Nothing is as tall as the journal: scrolling is a number.
 */
import { type LanesScene, PHONE, paintLanes } from "./lanes-canvas.js";
import { LanesFold, type ShownLanes } from "./lanes-fold.js";
import { LanesHead, LanesLabels } from "./lanes-labels.js";
import { type LanesInput, LanesRows, ROW } from "./lanes-rows.js";

export { MOST_LANES } from "./lanes-fold.js";
export type { LanesFilter, LanesInput, Thinking } from "./lanes-rows.js";

/** Browsers fail to scroll elements that are much taller. */
const TALLEST = 8_000_000;
const NARROWEST = 92;

export class LanesView {
  readonly #head = new LanesHead();
  readonly #scroll = box("lanes-scroll");
  readonly #sizer = box("lanes-sizer");
  readonly #window = box("lanes-window");
  readonly #canvas = document.createElement("canvas");
  readonly #labels = new LanesLabels(this.#window);
  readonly #rows = new LanesRows();
  readonly #fold = new LanesFold();
  #shown: ShownLanes = { lanes: [], folded: [] };
  readonly #observer: ResizeObserver;
  #input: LanesInput | undefined;
  #frame = 0;
  #width = 0;
  #height = 0;
  /** New rows scroll into view. */
  #following = true;

  constructor(host: HTMLElement, onSelect: (n: number) => void) {
    this.#scroll.tabIndex = 0;
    this.#scroll.setAttribute("role", "listbox");
    this.#scroll.setAttribute("aria-label", "Lanes: entries in order");
    this.#sizer.setAttribute("role", "presentation");
    this.#window.setAttribute("role", "presentation");
    this.#canvas.setAttribute("aria-hidden", "true");
    this.#window.append(this.#canvas);
    this.#sizer.append(this.#window);
    this.#scroll.append(this.#sizer);
    host.append(this.#head.element, this.#scroll);
    this.#scroll.addEventListener(
      "scroll",
      () => {
        const { scrollTop, scrollHeight, clientHeight } = this.#scroll;
        this.#following = scrollTop + clientHeight >= scrollHeight - ROW * 2;
        this.draw();
      },
      { passive: true },
    );
    this.#window.addEventListener("click", (event) => {
      const row = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-n]") : null;
      if (row !== null) onSelect(Number(row.dataset.n));
    });
    this.#observer = new ResizeObserver(() => this.draw());
    this.#observer.observe(this.#scroll);
  }

  close(): void {
    cancelAnimationFrame(this.#frame);
    this.#observer.disconnect();
    this.#head.element.remove();
    this.#scroll.remove();
  }

  update(input: LanesInput): void {
    const before = this.#input;
    // An older model is replaced by one that begins earlier: what is looked at stays where it is.
    const anchor =
      before === undefined || this.#following || !this.#rows.moves(input)
        ? undefined
        : this.#rows.at(this.#rows.placeAt(this.#top()))?.n;
    this.#input = input;
    this.#rows.take(input);
    this.#chooseLanes(input);
    this.#measure();
    if (anchor !== undefined) this.#scroll.scrollTop = this.#rows.yOf(this.#rows.placeOfEntry(anchor));
    if (input.selected !== undefined && input.selected !== before?.selected) this.#reveal(input.selected);
    else if (this.#following && input.asOf === undefined) this.#scroll.scrollTop = this.#scroll.scrollHeight;
    this.draw();
  }

  follow(): void {
    this.#following = true;
    this.#scroll.scrollTop = this.#scroll.scrollHeight;
    this.draw();
  }

  /** The entry of the shown row before or after an entry. */
  step(n: number | undefined, by: number): number | undefined {
    return this.#rows.step(n, by);
  }

  draw(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.#paint());
  }

  #scale(): number {
    const { height } = this.#rows;
    return height > TALLEST ? height / TALLEST : 1;
  }

  #top(): number {
    return this.#scroll.scrollTop * this.#scale();
  }

  #reveal(n: number): void {
    this.#following = false;
    const y = this.#rows.yOf(this.#rows.placeOfEntry(n));
    const scale = this.#scale();
    const top = this.#top();
    const height = this.#scroll.clientHeight;
    if (y < top + ROW) this.#scroll.scrollTop = Math.max(0, y - ROW) / scale;
    else if (y + ROW * 2 > top + height) this.#scroll.scrollTop = (y + ROW * 3 - height) / scale;
  }

  #measure(): void {
    this.#sizer.style.height = `${Math.min(TALLEST, this.#rows.height)}px`;
    const { content } = this.#columns();
    this.#sizer.style.width = content > this.#scroll.clientWidth ? `${content}px` : "100%";
  }

  /** The first and the last place in view. */
  #inView(): { readonly first: number; readonly last: number } {
    const top = this.#top();
    return {
      first: Math.max(0, this.#rows.placeAt(top) - 1),
      last: Math.min(this.#rows.count - 1, this.#rows.placeAt(top + this.#scroll.clientHeight) + 1),
    };
  }

  /** Whether other lanes have columns now. */
  #chooseLanes(input: LanesInput): boolean {
    const before = this.#shown.lanes;
    const { first, last } = this.#inView();
    this.#shown = this.#fold.choose(input, this.#rows, first, last);
    const { lanes } = this.#shown;
    return lanes.length !== before.length || lanes.some((lane, index) => lane !== before[index]);
  }

  #gutter(): number {
    return this.#scroll.clientWidth < PHONE ? 44 : 128;
  }

  /** Where the first lane is, and how far the next one is from it. The last one has room for its labels. */
  #columns(): { readonly first: number; readonly step: number; readonly content: number } {
    const width = this.#scroll.clientWidth;
    const { lanes: shown, folded } = this.#shown;
    const lanes = Math.max(1, shown.length + (folded.length > 0 ? 1 : 0));
    const phone = width < PHONE;
    // Words stand at the right of a lane, but at the left of a foreign one.
    const tail = phone ? 70 : folded.length > 0 || shown.at(-1)?.kind === "foreign" ? 66 : 130;
    const first = this.#gutter() + (phone ? 34 : 58);
    const step =
      lanes === 1
        ? 160
        : Math.max(phone ? 74 : NARROWEST, Math.min(240, (width - first - tail) / (lanes - 1)));
    return { first, step, content: first + step * (lanes - 1) + tail };
  }

  #paint(): void {
    const input = this.#input;
    if (input === undefined) return;
    const { clientWidth: width, clientHeight: height, scrollLeft } = this.#scroll;
    const sharp = Math.round(width * devicePixelRatio) === this.#canvas.width;
    if (width !== this.#width || height !== this.#height || !sharp) this.#resize(input, width, height);
    const paint = this.#canvas.getContext("2d");
    if (paint === null) return;
    const scale = devicePixelRatio;
    paint.setTransform(scale, 0, 0, scale, 0, 0);
    paint.clearRect(0, 0, width, height);
    const rows = this.#rows;
    if (this.#chooseLanes(input)) this.#measure();
    const { lanes, folded } = this.#shown;
    const top = this.#top();
    const gutter = this.#gutter();
    const columns = this.#columns();
    const columnAt = (index: number) => columns.first + columns.step * index - scrollLeft;
    const xs = new Map(lanes.map((lane, index) => [lane.id, columnAt(index)]));
    for (const { id } of folded) xs.set(id, columnAt(lanes.length));
    const scene: LanesScene = {
      input,
      rows,
      lanes,
      folded: folded.length > 0 ? columnAt(lanes.length) : undefined,
      width,
      height,
      gutter,
      step: columns.step,
      ...this.#inView(),
      x: (lane) => xs.get(lane) ?? -100,
      y: (place) => rows.yOf(place) - top,
    };
    this.#head.draw(this.#shown, gutter, columns, scrollLeft, input.doing);
    paintLanes(paint, scene);
    this.#labels.draw(scene);
    // Some entries have no row of their own, and a row may be out of view.
    const active = `entry-${input.selected}`;
    if (document.getElementById(active) === null) this.#scroll.removeAttribute("aria-activedescendant");
    else this.#scroll.setAttribute("aria-activedescendant", active);
  }

  #resize(input: LanesInput, width: number, height: number): void {
    this.#width = width;
    this.#height = height;
    for (const { style } of [this.#window, this.#canvas]) {
      style.width = `${width}px`;
      style.height = `${height}px`;
    }
    this.#canvas.width = Math.round(width * devicePixelRatio);
    this.#canvas.height = Math.round(height * devicePixelRatio);
    this.#measure();
    if (input.selected !== undefined) this.#reveal(input.selected);
    else if (this.#following && input.asOf === undefined) this.#scroll.scrollTop = this.#scroll.scrollHeight;
  }
}

function box(name: string): HTMLElement {
  const made = document.createElement("div");
  made.className = name;
  return made;
}
