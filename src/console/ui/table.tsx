/** Tables of the administration screens, and the buttons in their rows. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { readOnly } from "../data/api.js";
import { toast } from "./kit.js";

interface TableProps {
  readonly label: string;
  /** A name that ends with `>` stands at the right, as the numbers below it. */
  readonly columns?: readonly string[];
  /** Columns share the width, and text is cut. */
  readonly fixed?: boolean;
  readonly children: ComponentChildren;
}

export function Table({ label, columns, fixed = false, children }: TableProps) {
  return (
    <div class="table-scroll scroll" tabIndex={0} role="region" aria-label={label}>
      <table class={fixed ? "grid fixed" : "grid"}>
        {columns !== undefined && (
          <thead>
            <tr>
              {columns.map((column, index) =>
                column === "" ? (
                  <td key={String(index)} />
                ) : (
                  <th key={column} class={column.endsWith(">") ? "right" : ""}>
                    {column.replace(/>$/, "")}
                  </th>
                ),
              )}
            </tr>
          </thead>
        )}
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

interface ActProps {
  readonly name: string;
  readonly danger?: boolean;
  /** Asks once more. */
  readonly sure?: boolean;
  /** What is said afterwards. */
  readonly done?: string;
  readonly run: () => Promise<unknown>;
  readonly after?: () => void;
}

/** A button that changes something on the server, and says how it went. */
export function Act({ name, danger = false, sure = false, done, run, after }: ActProps) {
  const [asked, setAsked] = useState(false);
  const [busy, setBusy] = useState(false);
  const act = async () => {
    setBusy(true);
    try {
      await run();
      if (done !== undefined) toast(done, "good");
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error), "bad");
    }
    setBusy(false);
    setAsked(false);
    after?.();
  };
  return (
    <button
      type="button"
      class={`button small ${danger ? "danger" : ""}`}
      disabled={busy || readOnly.value !== undefined}
      title={readOnly.value}
      onBlur={() => setAsked(false)}
      onClick={() => (sure && !asked ? setAsked(true) : void act())}
    >
      {asked ? `Really ${name.toLowerCase()}` : name}
    </button>
  );
}
