/** A call of an agent: its name and arguments. */
import type { OpenCall } from "../../data/shapes.js";
import { Text } from "../../ui/text.js";

/** Longer arguments are cut; the journal has them whole. */
const MOST = 4_000;

function argumentsOf(call: OpenCall): [string, string][] {
  try {
    const value: unknown = JSON.parse(call.arguments);
    if (typeof value !== "object" || value === null) return [["", String(value)]];
    return Object.entries(value).map(([name, each]) => [
      name,
      typeof each === "string"
        ? each
        : Array.isArray(each) && each.every((item) => typeof item !== "object")
          ? each.join(", ")
          : JSON.stringify(each),
    ]);
  } catch {
    return [["", call.arguments]];
  }
}

export function Call({ call }: { readonly call: OpenCall }) {
  const args = argumentsOf(call);
  return (
    <div class="call">
      <div class="call-name mono">
        <Text>{call.name}</Text>
      </div>
      {args.length > 0 && (
        <dl class="call-args">
          {args.map(([name, value]) => (
            <div key={name}>
              <dt>
                <Text>{name}</Text>
              </dt>
              <dd>
                <Text>{value.length > MOST ? `${value.slice(0, MOST)}…` : value}</Text>
              </dd>
            </div>
          ))}
        </dl>
      )}
    </div>
  );
}
