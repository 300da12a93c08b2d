/** Names and values below each other. */
import { type ComponentChildren, Fragment } from "preact";

export type Fact = readonly [name: string, value: ComponentChildren];

export function FactList({ rows }: { readonly rows: readonly Fact[] }) {
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}
