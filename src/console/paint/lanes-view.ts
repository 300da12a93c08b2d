/**
 * Draws lanes: rows in view are recycled elements with text, lines and bars of the same rows are one canvas of the size
 * of the view. Nothing is as tall as the journal.
 */
import type { Drawing, Lane, LanesModel, Row, Span, Tone } from "../model/lanes.js";
import { BLOCK } from "../model/lanes.js";
import { visibleString } from "../model/visible-text.js";
import { duration, short } from "../model/words.js";
import { agentColor, colorOf } from "./colors.js";

const ROW = 26;
const HEAD = 46;
const TALLEST = 8_000_000;
/** In clock order: pixels for a second, and from which gap on a pause is drawn as a break. */
const PER_SECOND = 40;
const BREAK = 3_000;
const NARROWEST = 92;
const PHONE = 640;
const SHORTEST_LABEL = 124;
/** Between actions that run at the same time. */
const TRACK = 9;

export interface LanesFilter {
  readonly actions: boolean;
  readonly failures: boolean;
  readonly lane: string | undefined;
}

export interface Thinking {
  readonly agent: string;
  /** The entry that it works on. */
  readonly since: number;
  readonly at: number;
}

export interface LanesInput {
  readonly model: LanesModel;
  readonly filter: LanesFilter;
  readonly clock: boolean;
  readonly selected: number | undefined;
  /** Entries after it are faint. */
  readonly asOf: number | undefined;
  readonly thinking: readonly Thinking[];
  readonly now: number;
}

interface Slot {
  readonly row: HTMLElement;
  readonly n: HTMLElement;
  readonly since: HTMLElement;
  readonly label: HTMLElement;
  index: number;
}

export class LanesView {
  readonly #head: HTMLElement;
  readonly #scroll: HTMLElement;
  readonly #sizer: HTMLElement;
  readonly #window: HTMLElement;
  readonly #canvas: HTMLCanvasElement;
  readonly #slots: Slot[] = [];
  readonly #observer: ResizeObserver;
  readonly #onSelect: (n: number) => void;
  #input: LanesInput | undefined;
  /** Rows that pass the filter, by their index in the model; undefined if all do. */
  #order: number[] | undefined;
  /** For each row of the model the place of the last shown row up to it. */
  #places: number[] = [];
  #taken = 0;
  #filterKey = "";
  #offsets: number[] = [];
  #offsetsOf: "journal" | "clock" | undefined;
  #frame = 0;
  #width = 0;
  #height = 0;
  #following = true;
  #model: LanesModel | undefined;
  #headKey = "";
  #heads: HTMLElement[] = [];

  constructor(host: HTMLElement, onSelect: (n: number) => void) {
    this.#onSelect = onSelect;
    this.#head = element("div", "lanes-head");
    this.#head.setAttribute("aria-hidden", "true");
    this.#scroll = element("div", "lanes-scroll");
    this.#scroll.tabIndex = 0;
    this.#scroll.setAttribute("role", "listbox");
    this.#scroll.setAttribute("aria-label", "Lanes: entries in order");
    this.#sizer = element("div", "lanes-sizer");
    this.#window = element("div", "lanes-window");
    this.#sizer.setAttribute("role", "presentation");
    this.#window.setAttribute("role", "presentation");
    this.#canvas = document.createElement("canvas");
    this.#canvas.setAttribute("aria-hidden", "true");
    this.#window.append(this.#canvas);
    this.#sizer.append(this.#window);
    this.#scroll.append(this.#sizer);
    host.append(this.#head, this.#scroll);
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
      if (row !== null) this.#onSelect(Number(row.dataset.n));
    });
    this.#observer = new ResizeObserver(() => this.draw());
    this.#observer.observe(this.#scroll);
  }

  close(): void {
    cancelAnimationFrame(this.#frame);
    this.#observer.disconnect();
    this.#head.remove();
    this.#scroll.remove();
  }

  /** How many rows are in the document, for measurements. */
  get slots(): number {
    return this.#slots.length;
  }

  update(input: LanesInput): void {
    const before = this.#input;
    this.#input = input;
    const key = JSON.stringify(input.filter);
    if (this.#model !== input.model || this.#filterKey !== key) {
      // An older model is replaced by one that begins earlier: what is looked at stays where it is.
      const anchor = this.#model === undefined || this.#following ? undefined : this.#numberAtTop();
      this.#model = input.model;
      this.#filterKey = key;
      this.#order =
        input.filter.actions && !input.filter.failures && input.filter.lane === undefined ? undefined : [];
      this.#places = [];
      this.#taken = 0;
      this.#offsetsOf = undefined;
      this.#extend();
      this.#measure();
      if (anchor !== undefined) this.#scroll.scrollTop = this.#yOf(this.#placeOf(input.model.rowAt(anchor)));
    }
    this.#extend();
    this.#measure();
    if (input.selected !== undefined && input.selected !== before?.selected) this.#reveal(input.selected);
    else if (this.#following && input.asOf === undefined) this.#scroll.scrollTop = this.#scroll.scrollHeight;
    this.draw();
  }

  follow(): void {
    this.#following = true;
    this.#scroll.scrollTop = this.#scroll.scrollHeight;
    this.draw();
  }

  /** The shown row before or after an entry. */
  step(n: number | undefined, by: number): number | undefined {
    const input = this.#input;
    if (input === undefined) return undefined;
    const count = this.#count();
    const place = n === undefined ? (by > 0 ? -1 : count) : this.#placeOf(input.model.rowAt(n));
    const next = Math.max(0, Math.min(count - 1, place + by));
    return this.#rowAt(next)?.n;
  }

  #count(): number {
    return this.#order?.length ?? this.#input?.model.rows.length ?? 0;
  }

  #rowAt(place: number): Row | undefined {
    const index = this.#order === undefined ? place : this.#order[place];
    return index === undefined ? undefined : this.#input?.model.rows[index];
  }

  #placeOf(row: number): number {
    return this.#order === undefined ? row : (this.#places[row] ?? -1);
  }

  #extend(): void {
    const input = this.#input;
    if (input === undefined) return;
    const { rows } = input.model;
    if (this.#order !== undefined) {
      for (; this.#taken < rows.length; this.#taken++) {
        const row = rows[this.#taken];
        if (row !== undefined && isShown(row.drawing, input.filter)) this.#order.push(this.#taken);
        this.#places.push(this.#order.length - 1);
      }
    }
    const mode = input.clock ? "clock" : "journal";
    if (this.#offsetsOf !== mode) {
      this.#offsetsOf = mode;
      this.#offsets = [];
    }
    if (!input.clock) return;
    for (let place = this.#offsets.length; place < this.#count(); place++) {
      const row = this.#rowAt(place);
      const before = this.#rowAt(place - 1);
      const top = place === 0 ? 0 : (this.#offsets[place - 1] ?? 0);
      const gap = row === undefined || before === undefined ? 0 : row.at - before.at;
      this.#offsets.push(
        place === 0 ? 0 : top + (gap > BREAK ? ROW * 2 : Math.max(ROW, (gap / 1_000) * PER_SECOND)),
      );
    }
  }

  #yOf(place: number): number {
    if (this.#offsetsOf === "clock") return this.#offsets[Math.max(0, place)] ?? 0;
    return place * ROW;
  }

  /** The first shown row whose lower edge is below `y`. */
  #placeAt(y: number): number {
    if (this.#offsetsOf !== "clock") return Math.floor(y / ROW);
    let low = 0;
    let high = this.#offsets.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#offsets[middle] ?? 0) + ROW <= y) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #whole(): number {
    const live = (this.#input?.thinking.length ?? 0) > 0 ? ROW : 0;
    return this.#yOf(this.#count() - 1) + ROW + live + 18;
  }

  #scale(): number {
    const whole = this.#whole();
    return whole > TALLEST ? whole / TALLEST : 1;
  }

  #top(): number {
    return this.#scroll.scrollTop * this.#scale();
  }

  #numberAtTop(): number | undefined {
    return this.#rowAt(this.#placeAt(this.#top()))?.n;
  }

  #reveal(n: number): void {
    const input = this.#input;
    if (input === undefined) return;
    this.#following = false;
    const y = this.#yOf(this.#placeOf(input.model.rowAt(n)));
    const scale = this.#scale();
    const top = this.#top();
    const height = this.#scroll.clientHeight;
    if (y < top + ROW) this.#scroll.scrollTop = Math.max(0, y - ROW) / scale;
    else if (y + ROW * 2 > top + height) this.#scroll.scrollTop = (y + ROW * 3 - height) / scale;
  }

  #measure(): void {
    this.#sizer.style.height = `${Math.min(TALLEST, this.#whole())}px`;
    const width = this.#columns().content;
    this.#sizer.style.width = width > this.#scroll.clientWidth ? `${width}px` : "100%";
  }

  #gutter(): number {
    return this.#scroll.clientWidth < PHONE ? 44 : 128;
  }

  /** Where the first lane is, and how far the next one is from it. The last one has room for its labels. */
  #columns(): { readonly first: number; readonly step: number; readonly content: number } {
    const width = this.#scroll.clientWidth;
    const lanes = Math.max(1, this.#input?.model.lanes.length ?? 1);
    const phone = width < PHONE;
    // Words stand at the right of a lane, but at the left of a foreign one.
    const tail = phone ? 70 : this.#input?.model.lanes.at(-1)?.kind === "foreign" ? 66 : 130;
    const first = this.#gutter() + (phone ? 34 : 58);
    const step =
      lanes === 1
        ? 160
        : Math.max(phone ? 74 : NARROWEST, Math.min(240, (width - first - tail) / (lanes - 1)));
    return { first, step, content: first + step * (lanes - 1) + tail };
  }

  draw(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.#paint());
  }

  #paint(): void {
    const input = this.#input;
    if (input === undefined) return;
    const { clientWidth: width, clientHeight: height, scrollLeft } = this.#scroll;
    if (width !== this.#width || height !== this.#height) {
      this.#width = width;
      this.#height = height;
      this.#window.style.width = `${width}px`;
      this.#window.style.height = `${height}px`;
      this.#measure();
      this.#headKey = "";
      if (input.selected !== undefined) this.#reveal(input.selected);
      else if (this.#following && input.asOf === undefined)
        this.#scroll.scrollTop = this.#scroll.scrollHeight;
    }
    const scale = devicePixelRatio;
    const { width: wide, height: high } = this.#canvas;
    if (wide !== Math.round(width * scale) || high !== Math.round(height * scale)) {
      this.#canvas.width = Math.round(width * scale);
      this.#canvas.height = Math.round(height * scale);
      this.#canvas.style.width = `${width}px`;
      this.#canvas.style.height = `${height}px`;
    }
    const paint = this.#canvas.getContext("2d");
    if (paint === null) return;
    paint.setTransform(scale, 0, 0, scale, 0, 0);
    paint.clearRect(0, 0, width, height);
    const top = this.#top();
    const gutter = this.#gutter();
    const columns = this.#columns();
    const lanes = input.model.lanes;
    const xs = new Map<string, number>();
    for (const [index, lane] of lanes.entries())
      xs.set(lane.id, columns.first + columns.step * index - scrollLeft);
    const x = (lane: string) => xs.get(lane) ?? -100;
    this.#drawHead(lanes, gutter, columns, scrollLeft);
    const first = Math.max(0, this.#placeAt(top) - 1);
    const last = Math.min(this.#count() - 1, this.#placeAt(top + height) + 1);
    const y = (place: number) => this.#yOf(place) - top;

    paint.lineWidth = 1;
    for (const lane of lanes) {
      const at = Math.round(x(lane.id)) + 0.5;
      paint.strokeStyle = colorOf("--guide");
      paint.setLineDash(lane.kind === "foreign" ? [3, 3] : []);
      line(paint, at, 0, at, height);
    }
    paint.setLineDash([]);
    if (input.selected !== undefined) {
      const place = this.#placeOf(input.model.rowAt(input.selected));
      paint.fillStyle = colorOf("--accent-soft");
      paint.fillRect(0, y(place), width, ROW);
      paint.fillStyle = colorOf("--accent");
      paint.fillRect(0, y(place), 2, ROW);
    }
    this.#drawSpans(paint, input, first, last, x, y, height);
    for (let place = first; place <= last; place++) {
      const row = this.#rowAt(place);
      if (row === undefined) continue;
      paint.globalAlpha = input.asOf !== undefined && row.n > input.asOf ? 0.28 : 1;
      if (width >= PHONE) drawGap(paint, row, place === 0, y(place));
      this.#drawRow(paint, row.drawing, y(place), x, gutter, width);
      if (input.clock) this.#drawBreak(paint, place, y(place), gutter, width);
    }
    paint.globalAlpha = 1;
    this.#drawThinking(paint, input, x, y, width);
    this.#drawSlots(input, first, last, y, x, gutter, width);
  }

  #drawBreak(paint: CanvasRenderingContext2D, place: number, y: number, gutter: number, width: number): void {
    const [row, before] = [this.#rowAt(place), this.#rowAt(place - 1)];
    if (row === undefined || before === undefined || row.at - before.at <= BREAK) return;
    paint.strokeStyle = colorOf("--line-strong");
    paint.setLineDash([2, 4]);
    line(paint, gutter, y - ROW / 2, width - 12, y - ROW / 2);
    paint.setLineDash([]);
  }

  #drawSpans(
    paint: CanvasRenderingContext2D,
    { model, filter, asOf }: LanesInput,
    first: number,
    last: number,
    x: (lane: string) => number,
    y: (place: number) => number,
    height: number,
  ): void {
    const from = this.#order === undefined ? first : (this.#order[first] ?? 0);
    const to = this.#order === undefined ? last : (this.#order[last] ?? 0);
    const seen = new Set<number>(model.open);
    for (let block = Math.floor(from / BLOCK); block <= Math.floor(Math.max(from, to) / BLOCK); block++) {
      for (const index of model.spansIn(block)) seen.add(index);
    }
    for (const index of seen) {
      const span = model.spans[index];
      if (span === undefined || span.from > to || (span.to ?? Number.POSITIVE_INFINITY) < from) continue;
      if (span.kind === "action" && (!filter.actions || filter.failures)) continue;
      if (filter.failures && span.outcome === "ok") continue;
      if (filter.lane !== undefined && span.lane !== filter.lane) continue;
      const end = span.to === undefined ? undefined : model.rows[span.to]?.n;
      const later =
        asOf !== undefined &&
        (end ?? Number.POSITIVE_INFINITY) > asOf &&
        (model.rows[span.from]?.n ?? 0) > asOf;
      paint.globalAlpha = later ? 0.28 : 1;
      this.#drawSpan(paint, span, model, x(span.lane), y, height);
    }
    paint.globalAlpha = 1;
  }

  #drawSpan(
    paint: CanvasRenderingContext2D,
    span: Span,
    model: LanesModel,
    x: number,
    y: (place: number) => number,
    height: number,
  ): void {
    const begin = model.rows[span.from]?.drawing.kind;
    const top = Math.max(
      -20,
      y(this.#placeOf(span.from)) + (span.kind === "action" ? 7 : begin === "message" ? 20 : 13),
    );
    const bottom = Math.min(
      height + 20,
      span.to === undefined
        ? y(this.#count() - 1) + ROW
        : y(this.#placeOf(span.to)) + (span.kind === "action" ? 19 : 13),
    );
    if (bottom <= top) return;
    const wide = span.kind === "action" ? 6 : 8;
    const left = span.kind === "action" ? x + 6.5 + span.track * TRACK : x - 4;
    const failed = span.outcome === "failed";
    paint.beginPath();
    paint.roundRect(left, top, wide, bottom - top, 2.5);
    paint.fillStyle = failed ? colorOf("--bad-soft") : colorOf(span.kind === "action" ? "--action" : "--bar");
    paint.fill();
    if (span.queued !== undefined) {
      const until = Math.min(bottom, y(this.#placeOf(span.queued)) + 13);
      if (until > top) hatch(paint, left, top, wide, until - top);
    }
    paint.strokeStyle = failed
      ? colorOf("--bad")
      : colorOf(span.kind === "action" ? "--action-line" : "--bar-line");
    paint.lineWidth = 1;
    paint.setLineDash(span.to === undefined ? [3, 2] : []);
    paint.beginPath();
    paint.roundRect(left, top, wide, bottom - top, 2.5);
    paint.stroke();
    paint.setLineDash([]);
  }

  #drawRow(
    paint: CanvasRenderingContext2D,
    drawing: Drawing,
    top: number,
    x: (lane: string) => number,
    gutter: number,
    width: number,
  ): void {
    const middle = top + ROW / 2;
    switch (drawing.kind) {
      case "message": {
        const at = Math.round(top + 20) + 0.5;
        const from = x(drawing.from);
        const color = colorOf(ARROW[drawing.style]);
        paint.strokeStyle = color;
        paint.fillStyle = color;
        paint.lineWidth = 1.5;
        const ends = drawing.to.map(x);
        for (const end of ends) {
          const right = end >= from;
          const [start, stop] = [from + (right ? 4 : -4), end + (right ? -5 : 5)];
          paint.setLineDash(drawing.style === "response" ? [4, 3] : []);
          line(paint, start, at, stop, at);
          paint.setLineDash([]);
          arrow(paint, stop, at, right ? 1 : -1);
        }
        paint.beginPath();
        if (drawing.manual) paint.rect(from - 3, at - 3, 6, 6);
        else paint.arc(from, at, 3, 0, Math.PI * 2);
        paint.fillStyle = colorOf("--ground");
        paint.fill();
        paint.stroke();
        paint.lineWidth = 1;
        return;
      }
      case "turn": {
        paint.fillStyle = drawing.failed ? colorOf("--bad") : colorOf("--bar-line");
        paint.beginPath();
        paint.arc(x(drawing.lane), middle, 3.5, 0, Math.PI * 2);
        paint.fill();
        if (drawing.hollow) {
          paint.fillStyle = colorOf("--ground");
          paint.beginPath();
          paint.arc(x(drawing.lane), middle, 1.7, 0, Math.PI * 2);
          paint.fill();
        }
        return;
      }
      case "mark": {
        const at = x(drawing.lane);
        paint.strokeStyle = colorOf(TONE[drawing.tone]);
        paint.fillStyle = paint.strokeStyle;
        paint.lineWidth = 1.5;
        paint.beginPath();
        if (drawing.shape === "zigzag") {
          paint.moveTo(at - 9, middle + 3);
          for (let step = 0; step < 5; step++)
            paint.lineTo(at - 9 + (step + 0.5) * 3.6, middle + (step % 2 === 0 ? -4 : 4));
          paint.stroke();
        } else if (drawing.shape === "bracket") {
          paint.moveTo(at - 3, middle - 6);
          paint.lineTo(at - 7, middle - 6);
          paint.lineTo(at - 7, middle + 6);
          paint.lineTo(at - 3, middle + 6);
          paint.stroke();
        } else if (drawing.shape !== "none") {
          paint.arc(at, middle, drawing.shape === "dot" ? 2.5 : 3.5, 0, Math.PI * 2);
          if (drawing.shape === "hollow") {
            paint.fillStyle = colorOf("--ground");
            paint.fill();
            paint.stroke();
          } else paint.fill();
        }
        paint.lineWidth = 1;
        return;
      }
      case "band": {
        paint.beginPath();
        if (drawing.line) {
          paint.strokeStyle = colorOf(TONE[drawing.tone]);
          line(paint, gutter - 8, Math.round(middle) + 0.5, width - 10, Math.round(middle) + 0.5);
          return;
        }
        const [fill, edge] = BAND[drawing.tone];
        paint.roundRect(gutter - 8, top + 2.5, width - gutter - 2, ROW - 5, 5);
        paint.fillStyle = colorOf(fill);
        paint.fill();
        paint.strokeStyle = colorOf(edge);
        paint.stroke();
        return;
      }
      case "action":
      case "action-end":
      case "note":
        return;
    }
  }

  #drawThinking(
    paint: CanvasRenderingContext2D,
    { thinking, model, filter }: LanesInput,
    x: (lane: string) => number,
    y: (place: number) => number,
    width: number,
  ): void {
    if (thinking.length === 0 || filter.failures) return;
    const bottom = y(this.#count() - 1) + ROW + ROW / 2;
    for (const { agent, since } of thinking) {
      if (filter.lane !== undefined && filter.lane !== agent) continue;
      const row = model.rowAt(since);
      const begin = model.rows[row]?.drawing.kind;
      const top = y(this.#placeOf(Math.max(0, row))) + (begin === "message" ? 20 : 13);
      paint.beginPath();
      paint.roundRect(x(agent) - 4, top, 8, Math.max(6, bottom - top), [2.5, 2.5, 0, 0]);
      paint.fillStyle = colorOf("--bar");
      paint.globalAlpha = 0.6;
      paint.fill();
      paint.globalAlpha = 1;
      paint.setLineDash([3, 2]);
      paint.strokeStyle = colorOf("--bar-line");
      paint.stroke();
      paint.setLineDash([]);
    }
    void width;
  }

  #drawHead(
    lanes: readonly Lane[],
    gutter: number,
    { first, step }: { readonly first: number; readonly step: number },
    scrollLeft: number,
  ): void {
    const key = `${lanes.map((lane) => `${lane.id} ${lane.turns} ${lane.tokens}`).join("\n")} ${gutter} ${step} ${scrollLeft}`;
    if (key === this.#headKey) return;
    this.#headKey = key;
    this.#head.style.height = `${HEAD}px`;
    while (this.#heads.length < lanes.length + 2) {
      const made = element("div", "lane-name");
      made.append(element("b"), element("span"));
      this.#heads.push(made);
      this.#head.append(made);
    }
    for (const [index, made] of this.#heads.entries()) {
      const lane = lanes[index - 2];
      const [name, note] = [made.children[0], made.children[1]];
      if (name === undefined || note === undefined) continue;
      made.hidden = index >= lanes.length + 2 || (index < 2 && gutter < 100);
      if (index < 2) {
        made.className = "lane-name gutter-name";
        note.textContent = index === 0 ? "#" : "since";
        made.style.left = index === 0 ? "22px" : "66px";
        made.style.width = index === 0 ? "14px" : "48px";
      } else if (lane !== undefined) {
        made.className = `lane-name ${lane.kind}`;
        name.className =
          lane.kind === "person" ? "person" : lane.kind === "foreign" ? "foreign" : `c${lane.color % 8}-name`;
        name.textContent = visibleString(lane.name);
        note.textContent =
          lane.kind === "person"
            ? "person"
            : lane.kind === "foreign"
              ? `@${visibleString(lane.swarm ?? "")}`
              : headNote(lane, step >= 124);
        made.style.left = `${first + step * (index - 2.5) - scrollLeft}px`;
        made.style.width = `${step}px`;
        made.title = visibleString(lane.id);
        made.style.setProperty(
          "--mark",
          lane.kind === "agent"
            ? agentColor(lane.color)
            : colorOf(lane.kind === "person" ? "--text" : "--agent-7"),
        );
      }
    }
  }

  #drawSlots(
    input: LanesInput,
    first: number,
    last: number,
    y: (place: number) => number,
    x: (lane: string) => number,
    gutter: number,
    width: number,
  ): void {
    const live =
      input.thinking.length > 0 && !input.filter.failures
        ? input.thinking.filter(({ agent }) => input.filter.lane === undefined || input.filter.lane === agent)
        : [];
    const needed = Math.max(0, last - first + 1) + live.length;
    while (this.#slots.length < needed) this.#slots.push(this.#makeSlot());
    let used = 0;
    for (let place = first; place <= last; place++) {
      const row = this.#rowAt(place);
      const slot = this.#slots[used];
      if (row === undefined || slot === undefined) continue;
      used++;
      slot.index = place;
      slot.row.hidden = false;
      slot.row.style.transform = `translateY(${y(place)}px)`;
      slot.row.dataset.n = String(row.n);
      slot.row.id = `entry-${row.n}`;
      slot.row.setAttribute("aria-selected", String(row.n === input.selected));
      slot.row.setAttribute("aria-posinset", String(place + 1));
      slot.row.setAttribute("aria-setsize", String(this.#count()));
      slot.row.classList.toggle("after", input.asOf !== undefined && row.n > input.asOf);
      slot.n.textContent = String(row.n);
      const words = row.gap >= 20 && place > 0 ? `+${duration(row.gap).replace(" ", "")}` : "";
      slot.since.textContent = gutter < 100 ? "" : words;
      this.#label(slot, row.drawing, x, gutter, width);
    }
    for (const [index, { agent, at }] of live.entries()) {
      const slot = this.#slots[used];
      if (slot === undefined) continue;
      used++;
      slot.row.hidden = false;
      slot.row.style.transform = `translateY(${y(this.#count() - 1) + ROW}px)`;
      delete slot.row.dataset.n;
      slot.row.id = `live-${index}`;
      slot.row.setAttribute("aria-selected", "false");
      slot.n.textContent = "";
      slot.since.textContent = "";
      slot.label.className = "lane-label turn live";
      setText(slot.label, duration(Math.max(0, input.now - at)));
      place(slot.label, x(agent) + 10, 120);
    }
    for (let index = used; index < this.#slots.length; index++) {
      const slot = this.#slots[index];
      if (slot !== undefined) slot.row.hidden = true;
    }
    if (input.selected !== undefined)
      this.#scroll.setAttribute("aria-activedescendant", `entry-${input.selected}`);
  }

  #makeSlot(): Slot {
    const row = element("div", "lane-row");
    row.setAttribute("role", "option");
    const [n, since, label] = [
      element("span", "lane-n"),
      element("span", "lane-since"),
      element("span", "lane-label"),
    ];
    row.append(n, since, label);
    this.#window.append(row);
    return { row, n, since, label, index: -1 };
  }

  #label(slot: Slot, drawing: Drawing, x: (lane: string) => number, gutter: number, width: number): void {
    const { label } = slot;
    const lanes = this.#input?.model.lanes ?? [];
    const { step } = this.#columns();
    /** Up to the line of the next lane, or the edge; lanes that are too close for words share their room. */
    const cell = Math.max(SHORTEST_LABEL, step - 6);
    const room = (lane: string, offset: number) =>
      Math.min(lane === lanes.at(-1)?.id ? 320 : cell - offset, width - x(lane) - offset - 10);
    const placeAction = ({ lane, span }: { readonly lane: string; readonly span: number }) => {
      const offset = 17 + (this.#input?.model.spans[span]?.track ?? 0) * TRACK;
      place(label, x(lane) + offset, Math.max(60, room(lane, offset)));
    };
    switch (drawing.kind) {
      case "message": {
        const from = x(drawing.from);
        const ends = drawing.to.map(x);
        const left = Math.min(from, ...(ends.length > 0 ? ends : [from]));
        const right = Math.max(from, ...(ends.length > 0 ? ends : [from]));
        label.className = `lane-label message ${drawing.style}`;
        setText(label, drawing.label);
        place(label, left + 11, Math.max(right - left - 16, Math.min(cell - 11, width - left - 20)));
        return;
      }
      case "turn":
        label.className = `lane-label turn ${drawing.failed ? "failed" : ""}`;
        setText(label, drawing.label);
        place(label, x(drawing.lane) + 10, Math.max(60, room(drawing.lane, 10)));
        return;
      case "action":
        label.className = "lane-label action";
        setText(label, drawing.label);
        placeAction(drawing);
        return;
      case "action-end":
        label.className = `lane-label action-end ${drawing.outcome}`;
        setText(label, drawing.label);
        placeAction(drawing);
        return;
      case "mark": {
        const at = x(drawing.lane);
        const onLeft = at > width * 0.66;
        label.className = `lane-label mark ${drawing.tone} ${onLeft ? "left" : ""}`;
        setText(label, drawing.label);
        if (onLeft) {
          const wide = Math.min(Math.max(cell - 12, 190), at - gutter - 10);
          place(label, at - 10 - wide, wide);
        } else place(label, at + 12, room(drawing.lane, 12));
        return;
      }
      case "band":
      case "note":
        label.className = `lane-label ${drawing.kind} ${drawing.tone} ${drawing.kind === "band" && drawing.line ? "thin" : ""}`;
        setText(label, drawing.label);
        place(label, gutter + 4, width - gutter - 28);
    }
  }
}

const ARROW: Readonly<Record<Extract<Drawing, { kind: "message" }>["style"], string>> = {
  request: "--accent",
  response: "--text-3",
  broadcast: "--accent",
  interrupt: "--bad",
  completion: "--good",
  answer: "--wait",
};

const TONE: Readonly<Record<Tone, string>> = {
  neutral: "--text-3",
  wait: "--wait",
  good: "--good",
  bad: "--bad",
  accent: "--accent",
};

const BAND: Readonly<Record<Tone, readonly [string, string]>> = {
  neutral: ["--well", "--line-strong"],
  wait: ["--wait-soft", "--wait-line"],
  good: ["--good-soft", "--good"],
  bad: ["--bad-soft", "--bad"],
  accent: ["--accent-soft", "--accent-line"],
};

function headNote(lane: Lane, wide: boolean): string {
  if (lane.turns === 0) return "no turn yet";
  const turns = `${lane.turns} ${lane.turns === 1 ? "turn" : "turns"}`;
  if (lane.tokens === 0) return lane.failed > 0 ? `${turns} · ${lane.failed} failed` : turns;
  return `${turns} · ${short(lane.tokens)}${wide ? " tokens" : ""}`;
}

function isShown(drawing: Drawing, filter: LanesFilter): boolean {
  if (filter.failures) {
    return (
      (drawing.kind === "turn" && drawing.failed) ||
      (drawing.kind === "action-end" && drawing.outcome !== "ok") ||
      ((drawing.kind === "mark" || drawing.kind === "band") &&
        (drawing.tone === "bad" || drawing.tone === "wait"))
    );
  }
  if (!filter.actions && (drawing.kind === "action" || drawing.kind === "action-end")) return false;
  if (filter.lane === undefined) return true;
  if (drawing.kind === "message") return drawing.from === filter.lane || drawing.to.includes(filter.lane);
  return "lane" in drawing ? drawing.lane === filter.lane : true;
}

function drawGap(paint: CanvasRenderingContext2D, row: Row, first: boolean, top: number): void {
  if (first || row.gap < 20) return;
  // Logarithmic: 20 ms is a point, a minute is the whole width.
  const share = Math.min(1, Math.log10(row.gap / 20) / Math.log10(60_000 / 20));
  paint.fillStyle = row.gap > 5_000 ? colorOf("--wait") : colorOf("--line-strong");
  paint.beginPath();
  paint.roundRect(42, top + 11, 3 + share * 22, 3.5, 1.75);
  paint.fill();
}

function element(tag: "div" | "span" | "b", name = ""): HTMLElement {
  const made = document.createElement(tag);
  made.className = name;
  return made;
}

function setText(label: HTMLElement, text: string): void {
  const shown = visibleString(text);
  if (label.textContent !== shown) label.textContent = shown;
}

function place(label: HTMLElement, left: number, width: number): void {
  label.style.left = `${left}px`;
  label.style.width = `${Math.max(20, width)}px`;
}

function line(paint: CanvasRenderingContext2D, x1: number, y1: number, x2: number, y2: number): void {
  paint.beginPath();
  paint.moveTo(x1, y1);
  paint.lineTo(x2, y2);
  paint.stroke();
}

function arrow(paint: CanvasRenderingContext2D, x: number, y: number, direction: number): void {
  paint.beginPath();
  paint.moveTo(x - 6 * direction, y - 4);
  paint.lineTo(x, y);
  paint.lineTo(x - 6 * direction, y + 4);
  paint.stroke();
}

function hatch(
  paint: CanvasRenderingContext2D,
  left: number,
  top: number,
  width: number,
  height: number,
): void {
  paint.save();
  paint.beginPath();
  paint.rect(left, top, width, height);
  paint.clip();
  paint.fillStyle = colorOf("--ground");
  paint.globalAlpha *= 0.65;
  paint.fillRect(left, top, width, height);
  paint.globalAlpha = 1;
  paint.strokeStyle = colorOf("--bar-line");
  paint.lineWidth = 1;
  for (let at = top - width; at < top + height; at += 5) line(paint, left, at + width, left + width, at);
  paint.restore();
}
