/** JSON as a tree of our own; branches are made when they are opened. */
import { useState } from "preact/hooks";
import { Text } from "./text.js";

const MOST = 200;
/** Parts of a folded branch that are shown, and characters of a text in it. */
const PREVIEW = { parts: 6, text: 60 };

/** The begin of what is inside a folded branch, on one line. */
function previewOf(value: object): string {
  const items = Object.entries(value);
  const parts = items.slice(0, PREVIEW.parts).map(([key, each]) => {
    const text = Array.isArray(each)
      ? "[…]"
      : typeof each === "object" && each !== null
        ? "{…}"
        : typeof each === "string" && each.length > PREVIEW.text
          ? JSON.stringify(`${each.slice(0, PREVIEW.text)}…`)
          : JSON.stringify(each);
    return Array.isArray(value) ? text : `${key}: ${text}`;
  });
  if (items.length > parts.length) parts.push("…");
  return parts.join(", ");
}

export function Json({ value, open = 2 }: { readonly value: unknown; readonly open?: number }) {
  return (
    <div class="json">
      <Branch value={value} depth={open} last />
    </div>
  );
}

function Branch({
  name,
  value,
  depth,
  last,
}: {
  readonly name?: string;
  readonly value: unknown;
  readonly depth: number;
  readonly last: boolean;
}) {
  const [shown, setShown] = useState(depth > 0);
  const [most, setMost] = useState(MOST);
  const comma = last ? "" : ",";
  const label =
    name === undefined ? null : (
      <>
        <span class="json-key">
          "<Text>{name}</Text>"
        </span>
        :{" "}
      </>
    );
  if (typeof value !== "object" || value === null) {
    return (
      <div>
        {label}
        <Leaf value={value} />
        {comma}
      </div>
    );
  }
  const items = Object.entries(value);
  const [begin, end] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  if (items.length === 0)
    return (
      <div>
        {label}
        {begin}
        {end}
        {comma}
      </div>
    );
  if (!shown) {
    return (
      <div>
        <button type="button" class="json-fold" aria-expanded="false" onClick={() => setShown(true)}>
          {label}
          {begin}{" "}
          <span class="dim">
            <Text>{previewOf(value)}</Text>
          </span>{" "}
          {end}
        </button>
        {comma}
      </div>
    );
  }
  return (
    <div>
      <button type="button" class="json-fold" aria-expanded="true" onClick={() => setShown(false)}>
        {label}
        {begin}
      </button>
      <div class="json-in">
        {items.slice(0, most).map(([key, each], index) => (
          <Branch
            key={key}
            {...(!Array.isArray(value) && { name: key })}
            value={each}
            depth={depth - 1}
            last={index === items.length - 1}
          />
        ))}
        {items.length > most && (
          <button type="button" class="button small" onClick={() => setMost(most + 1_000)}>
            {items.length - most} more
          </button>
        )}
      </div>
      {end}
      {comma}
    </div>
  );
}

function Leaf({ value }: { readonly value: unknown }) {
  const [all, setAll] = useState(false);
  if (typeof value !== "string") return <span class="json-other">{String(value)}</span>;
  const cut = value.length > 2_000 && !all;
  return (
    <span class="json-text">
      "<Text>{cut ? value.slice(0, 2_000) : value}</Text>
      {cut ? "…" : ""}"
      {cut && (
        <button type="button" class="button small" onClick={() => setAll(true)}>
          all {value.length.toLocaleString("en-US")} characters
        </button>
      )}
    </span>
  );
}
